// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"math"
	"time"

	"github.com/bidemq/bide/storage"
)

// Unit is what the scores of a sorted set count since 1970.
type Unit string

// The units. Auto is seconds or milliseconds, as the scores look.
const (
	Auto         Unit = "auto"
	Seconds      Unit = "s"
	Milliseconds Unit = "ms"
	Microseconds Unit = "us"
)

const (
	leastSeconds = 1e8  // 1973: below that, a score is no instant of anybody's
	leastMillis  = 1e11 // 1973 in milliseconds, and the year 5138 in seconds
	leastMicros  = 1e14 // 1973 in microseconds, and the year 5138 in milliseconds
)

// ParseUnit reads the name of a unit.
func ParseUnit(name string) (Unit, error) {
	switch u := Unit(name); u {
	case Auto, Seconds, Milliseconds, Microseconds:
		return u, nil
	}
	return "", fmt.Errorf("%w: unit %q is not auto, s, ms or us", storage.ErrInvalid, name)
}

// guess returns the unit that both the least and the greatest score of a set are recent instants in.
func guess(least, greatest float64) (Unit, error) {
	switch {
	case least >= leastSeconds && greatest < leastMillis:
		return Seconds, nil
	case least >= leastMillis && greatest < leastMicros:
		return Milliseconds, nil
	}
	return "", fmt.Errorf("%w: scores from %v to %v are not all recent seconds or all recent milliseconds; "+
		"say what they are (--score s, ms or us)", storage.ErrInvalid, least, greatest)
}

// instant is the due time that a score means; before 1970 is 1970, which is due.
func (u Unit) instant(score float64) (time.Time, error) {
	micros := score
	switch u {
	case Seconds:
		micros *= 1e6
	case Milliseconds:
		micros *= 1e3
	case Auto, Microseconds:
	}
	if math.IsNaN(micros) || math.Abs(micros) > 1e18 {
		return time.Time{}, fmt.Errorf("%w: score %v is no instant", storage.ErrInvalid, score)
	}
	return time.UnixMicro(int64(math.Round(max(micros, 0)))).UTC(), nil
}
