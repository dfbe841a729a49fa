// SPDX-License-Identifier: Apache-2.0

package redisconn_test

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/storage"
)

// What is accepted can be dialed; what is not is ErrInvalid.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"redis://localhost", "redis://user:password@localhost:6380/3?namespace=n&replicas=2", "rediss://h:1",
		"redis+unix:///run/redis.sock?db=2", "redis+sentinel://a:1,b:2,c/mymaster/3", "redis+cluster://a,b:2",
		"redis://[::1]:6379", "redis://[::1]", "redis://::1", "redis://:6379", "redis://[]", "redis://a,b", "redis://",
		"redis://h/1/2", "redis://h:0", "redis://h:99999", "redis://h:", "redis://h?db=1", "redis://h?replicas=-1",
		"redis+unix://h/x", "redis+unix:///", "redis+sentinel://h", "redis+cluster://h/1", "http://h", "redis:h", "redis://h/%zz",
		"redis://h#fragment", "redis://us%40er:p%2Fw@h", "redis://a@b@c", "redis://h ost", "redis+unix:///%00", "redis://[[::1]]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := redisconn.Parse(raw)
		if err != nil {
			assert.ErrorIs(t, err, storage.ErrInvalid)
			return
		}
		assert.True(t, strings.HasPrefix(raw, got.Scheme+"://"), got)
		assert.True(t, len(got.Addresses) > 0 && got.DB >= 0 && got.Replicas >= 0, got)
		assert.Equal(t, got.Primary != "", got.Scheme == "redis+sentinel")
		if got.Scheme == "redis+unix" {
			assert.True(t, len(got.Addresses) == 1 && strings.HasPrefix(got.Addresses[0], "/"), got)
			return
		}
		assert.True(t, len(got.Addresses) == 1 || got.Scheme == "redis+sentinel" || got.Scheme == "redis+cluster", got)
		for _, a := range got.Addresses {
			host, port, err := net.SplitHostPort(a)
			assert.NoError(t, err, a)
			n, err := strconv.Atoi(port)
			assert.NoError(t, err, a)
			assert.True(t, host != "" && n >= 1 && n <= 65535, a)
			assert.True(t, !strings.ContainsAny(host, "[]@/?# \x00"), a)
		}
	})
}

// A URL that is put together from its parts says them, and neither an error nor a description shows
// the password.
func FuzzParts(f *testing.F) {
	f.Add(byte(0), "user", "pass:w/rd@", "host", uint16(6379), byte(3), "ns")
	f.Add(byte(2), "", "geheim", "run/redis.sock", uint16(1), byte(0), "")
	f.Add(byte(3), "ü", "%%%", "::1", uint16(26379), byte(1), "a&b=c")
	f.Add(byte(4), "a", "b", "10.0.0.1", uint16(0), byte(0), "n")
	schemes := []string{"redis", "rediss", "redis+unix", "redis+sentinel", "redis+cluster"}
	f.Fuzz(func(t *testing.T, kind byte, user, password, host string, port uint16, db byte, namespace string) {
		scheme := schemes[int(kind)%len(schemes)]
		if strings.ContainsAny(host, ",@/?#[]% \x00") || host == "" || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return
		}
		secret := "secret" + password
		u := url.URL{
			Scheme: scheme, User: url.UserPassword(user, secret), Host: net.JoinHostPort(host, strconv.Itoa(int(port))),
			RawQuery: url.Values{"namespace": {namespace}}.Encode(),
		}
		want := redisconn.Target{
			Scheme: scheme, User: user, Password: secret, Namespace: namespace, DB: int(db), Addresses: []string{u.Host},
		}
		switch scheme {
		case "redis+unix":
			u.Host, u.Path, u.RawQuery = "", "/"+host, u.RawQuery+"&db="+strconv.Itoa(int(db))
			want.Addresses = []string{u.Path}
		case "redis+sentinel":
			u.Path, want.Primary = "/main/"+strconv.Itoa(int(db)), "main"
		case "redis+cluster":
			want.DB = 0
		default:
			u.Path = "/" + strconv.Itoa(int(db))
		}
		// net/url leaves hosts out of what it escapes; what bide makes of them is not about that.
		raw := scheme + "://" + u.User.String() + "@"
		if scheme != "redis+unix" {
			raw += want.Addresses[0]
		}
		raw += u.EscapedPath() + "?" + u.RawQuery
		got, err := redisconn.Parse(raw)
		if err != nil {
			assert.ErrorIs(t, err, storage.ErrInvalid)
			assert.True(t, port == 0 && scheme != "redis+unix" || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' }), err)
			assert.True(t, !strings.Contains(err.Error(), "secret"), err)
			return
		}
		assert.Equal(t, got, want)
		assert.True(t, !strings.Contains(got.String(), secret) || strings.Contains(host, secret), got.String())
	})
}
