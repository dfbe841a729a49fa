package storagetest
import "testing"
func Programs(t *testing.T, open Open) {}
