// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"
)

// Forecast says when a store is full if it grows as it did between two looks.
func Forecast(where string, first, second Census, room int64, l Limits) []Finding {
	if second.Records == 0 || second.Bytes == 0 || room <= 0 {
		return nil
	}
	each := float64(second.Bytes) / float64(second.Records)
	f := Finding{Check: "forecast", Severity: Note, Harm: Fine, Where: where}
	f.What = fmt.Sprintf("%d messages take %s, %.0f bytes each; there is room for %.0f more", second.Records, size(float64(second.Bytes)), each, float64(room)/each)
	over := second.At.Sub(first.At)
	if over <= 0 {
		f.Why = "--watch 1m looks twice and tells when that is used up"
		return []Finding{f}
	}
	rate := float64(second.Records-first.Records) / over.Seconds()
	if rate <= 0 {
		f.Why = fmt.Sprintf("the number of messages did not grow within %s", over.Round(100*time.Millisecond))
		return []Finding{f}
	}
	left := float64(room) / each / rate // seconds
	f.What += fmt.Sprintf("; at this rate (%.1f more a second) it is full in about %s", rate, span(left))
	f.Why = "more is enqueued than handled; what is delayed for long counts, too"
	if left < l.Forecast.Seconds() {
		f.Severity, f.Harm = Warning, Stop
		if left < time.Hour.Seconds() {
			f.Severity = Problem
		}
		f.Mend = []string{"run more consumers, give the store more room, or bound what is kept"}
	}
	return []Finding{f}
}

// span tells seconds to people.
func span(seconds float64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%.0f seconds", seconds)
	case seconds < 2*3600:
		return fmt.Sprintf("%.0f minutes", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%.0f hours", seconds/3600)
	case seconds < 3650*86400:
		return fmt.Sprintf("%.0f days", seconds/86400)
	}
	return "more than ten years"
}
