// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
)

// Check looks at what the producer says. Its error goes into the record's EnqueueResult.
func (r *Record) Check(maxBody int) error {
	if err := CheckID(r.ID); err != nil {
		return err
	}
	if err := checkText("key", r.Key); err != nil {
		return err
	}
	if err := checkNumber("priority", r.Priority, 0, MaxPriority); err != nil {
		return err
	}
	if err := checkNumber("max attempts", r.MaxAttempts, 0, MaxAttempts); err != nil {
		return err
	}
	if !r.Due.IsZero() && r.Delay != 0 {
		return fmt.Errorf("%w: both a due time and a delay are set", ErrInvalid)
	}
	if err := checkDue(r.Due); err != nil {
		return err
	}
	if err := checkDuration("delay", r.Delay, 0, MaxDelay); err != nil {
		return err
	}
	if err := checkDuration("expiry", r.ExpireIn, 0, MaxDelay); err != nil {
		return err
	}
	if err := checkDuration("dedup window", r.DedupFor, 0, MaxDelay); err != nil {
		return err
	}
	if r.OnLive > Rerun {
		return fmt.Errorf("%w: unknown OnLive %d", ErrInvalid, r.OnLive)
	}
	return checkPayload(r.Body, r.Headers, maxBody)
}

// Check looks at every field.
func (c *Claim) Check() error {
	if err := CheckLimit(c.Limit); err != nil {
		return err
	}
	if c.MaxBytes < 0 {
		return fmt.Errorf("%w: max bytes %d is negative", ErrInvalid, c.MaxBytes)
	}
	if err := checkText("claimer", c.By); err != nil {
		return err
	}
	scope := c.Scope()
	if err := scope.Check(); err != nil {
		return err
	}
	return CheckLease(c.Lease)
}

// Check looks at every field.
func (s *Scope) Check() error {
	if err := CheckQueue(s.Queue); err != nil {
		return err
	}
	if len(s.Keys) > 0 && len(s.Except) > 0 {
		return fmt.Errorf("%w: both keys and excepted keys are given", ErrInvalid)
	}
	if err := checkNumber("number of keys", len(s.Keys)+len(s.Except), 0, MaxKeys); err != nil {
		return err
	}
	for _, keys := range [][]string{s.Keys, s.Except} {
		for _, k := range keys {
			if err := checkText("key", k); err != nil {
				return err
			}
		}
	}
	return nil
}

// Check looks at the queue and the id.
func (r *Receipt) Check() error {
	if err := CheckQueue(r.Queue); err != nil {
		return err
	}
	return CheckID(r.ID)
}

// Check looks at every field.
func (s *Settlement) Check() error {
	if err := s.Receipt.Check(); err != nil {
		return err
	}
	if s.Verdict < Ack || s.Verdict > Return {
		return fmt.Errorf("%w: unknown verdict %d", ErrInvalid, s.Verdict)
	}
	if s.Delay != 0 && s.Verdict != Retry && s.Verdict != Release {
		return fmt.Errorf("%w: only retry and release take a delay", ErrInvalid)
	}
	return checkDuration("delay", s.Delay, 0, MaxDelay)
}

// Check looks at the fields that are set.
func (e *Edit) Check(maxBody int) error {
	if e.Due != nil && e.Delay != nil {
		return fmt.Errorf("%w: both a due time and a delay are set", ErrInvalid)
	}
	if e.Due != nil {
		if e.Due.IsZero() {
			return fmt.Errorf("%w: due time is zero", ErrInvalid)
		}
		if err := checkDue(*e.Due); err != nil {
			return err
		}
	}
	if e.Delay != nil {
		if err := checkDuration("delay", *e.Delay, 0, MaxDelay); err != nil {
			return err
		}
	}
	if e.Priority != nil {
		if err := checkNumber("priority", *e.Priority, 0, MaxPriority); err != nil {
			return err
		}
	}
	var body []byte
	var headers map[string]string
	if e.Body != nil {
		body = *e.Body
	}
	if e.Headers != nil {
		headers = *e.Headers
	}
	return checkPayload(body, headers, maxBody)
}

// Check looks at every field; the states allowed are those of the call.
func (f *Filter) Check(allowed ...State) error {
	ok := false
	for _, s := range allowed {
		ok = ok || s == f.State
	}
	if !ok {
		return fmt.Errorf("%w: state %q is not one of %v", ErrInvalid, f.State, allowed)
	}
	if f.ID != "" {
		if err := CheckID(f.ID); err != nil {
			return err
		}
	}
	if err := checkText("key", f.Key); err != nil {
		return err
	}
	if f.Untold && f.State != Dead {
		return fmt.Errorf("%w: only dead records are untold", ErrInvalid)
	}
	return CheckLimit(f.Limit)
}

// Check looks at every field.
func (f *KeyFilter) Check() error {
	if f.By > Oldest {
		return fmt.Errorf("%w: unknown order of keys %d", ErrInvalid, f.By)
	}
	if f.After != "" && (f.By != ByName || f.Key != "") {
		return fmt.Errorf("%w: keys are listed from one on by name only", ErrInvalid)
	}
	if err := checkText("key", f.Key); err != nil {
		return err
	}
	if err := checkText("key", f.After); err != nil {
		return err
	}
	return CheckLimit(f.Limit)
}

// Check looks at the id and the sequence.
func (d *DeadID) Check() error {
	if d.Seq < 1 {
		return fmt.Errorf("%w: sequence %d is not positive", ErrInvalid, d.Seq)
	}
	return CheckID(d.ID)
}

// Check looks at every field.
func (r *Repair) Check() error { return CheckLimit(r.Limit) }
