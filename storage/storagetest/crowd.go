package storagetest
import "testing"
func Crowd(t *testing.T, open Open) {}
