// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bidemq/bide/storage"
)

// Target is what a URL says.
type Target struct {
	Scheme    string
	Addresses []string // host:port, or the path of a socket
	User      string
	Password  string
	DB        int
	Primary   string // name that Sentinel knows the primary by
	Namespace string // of bide's keys, "" if the URL names none
	Replicas  int    // that answers wait for, 0 if the URL names none
}

// String names the target without its password.
func (t Target) String() string { return t.Scheme + "://" + strings.Join(t.Addresses, ",") }

var schemes = []string{"redis", "rediss", "redis+unix", "redis+sentinel", "redis+cluster"}

// Parse reads a URL as redisstore.Open documents it. Its error is storage.ErrInvalid.
func Parse(raw string) (Target, error) {
	invalid := func(format string, args ...any) (Target, error) {
		return Target{}, fmt.Errorf("%w: %s", storage.ErrInvalid, fmt.Sprintf(format, args...))
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return invalid("URL scheme is not one of %s", strings.Join(schemes, ", ")) // without what may be a password
	}
	if !slices.Contains(schemes, scheme) {
		return invalid("URL scheme %q is not one of %s", scheme, strings.Join(schemes, ", "))
	}
	// Several hosts with ports are no URL to net/url, so they are taken out first.
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	credentials, hosts := "", authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		credentials, hosts = authority[:i+1], authority[i+1:]
	} else if scheme != "redis+unix" && strings.Contains(path, "@") {
		return invalid("/, ? and # of a user or a password are written %%2F, %%3F and %%23") // what follows would show it
	}
	u, err := url.Parse(scheme + "://" + credentials + "host" + path)
	if err != nil {
		return invalid("URL with scheme %q cannot be read", scheme) // the cause would show the password
	}
	t := Target{Scheme: scheme, User: u.User.Username()}
	t.Password, _ = u.User.Password()
	parts := strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' })
	switch scheme {
	case "redis+unix":
		if hosts != "" || u.Path == "" || u.Path == "/" {
			return invalid("redis+unix wants the path of a socket, as in redis+unix:///run/redis.sock")
		}
		t.Addresses, parts = []string{u.Path}, nil
	case "redis+sentinel":
		if len(parts) == 0 {
			return invalid("redis+sentinel wants the name of a primary, as in redis+sentinel://host:26379/mymaster")
		}
		t.Primary, parts = parts[0], parts[1:]
		t.Addresses, err = splitHosts(hosts, "26379")
	default:
		t.Addresses, err = splitHosts(hosts, "6379")
	}
	if err != nil {
		return invalid("%s", err)
	}
	if len(t.Addresses) > 1 && strings.HasPrefix(scheme, "redis") && !strings.Contains(scheme, "+") {
		return invalid("%s takes one host, redis+sentinel and redis+cluster take several", scheme)
	}
	if len(parts) > 1 || len(parts) == 1 && scheme == "redis+cluster" {
		return invalid("path %q says more than %s understands", u.Path, scheme)
	}
	db := strings.Join(parts, "")
	for name, values := range u.Query() {
		switch {
		case name == "namespace":
			t.Namespace = values[0]
		case name == "replicas":
			if t.Replicas, err = strconv.Atoi(values[0]); err != nil || t.Replicas < 0 {
				return invalid("replicas %q is not a number", values[0])
			}
		case name == "db" && scheme == "redis+unix":
			db = values[0]
		default:
			return invalid("parameter %q is not known to %s, namespace and replicas are%s", name, scheme,
				map[bool]string{true: ", and db"}[scheme == "redis+unix"])
		}
	}
	if db != "" {
		if t.DB, err = strconv.Atoi(db); err != nil || t.DB < 0 {
			return invalid("database %q is not a number", db)
		}
	}
	return t, nil
}

func splitHosts(hosts, port string) ([]string, error) {
	var addresses []string
	for host := range strings.SplitSeq(hosts, ",") {
		if host == "" {
			return nil, fmt.Errorf("a host is missing")
		}
		name, p, err := net.SplitHostPort(host)
		if err != nil {
			name, p = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), port
		} else if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("port %q is not between 1 and 65535", p)
		}
		if name == "" {
			return nil, fmt.Errorf("a host is missing")
		}
		if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == utf8.RuneError || strings.ContainsRune("[]@", r) }) {
			return nil, fmt.Errorf("host %q is no name of a host", name)
		}
		addresses = append(addresses, net.JoinHostPort(name, p))
	}
	return addresses, nil
}
