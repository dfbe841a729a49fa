// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bidemq/bide/bench/report"
	"github.com/bidemq/bide/bench/result"
)

// writeReport makes the report from results: those that were just taken, and where there are none
// those that were kept with the last report.
func writeReport(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	in := flags.String("in", report.MainName, "file with the results of all systems")
	conditions := flags.String("conditions", report.ConditionsName, "file with the results under other conditions")
	growth := flags.String("growth", report.GrowthName, "file with the results of growth")
	out := flags.String("out", "../docs/benchmarks.md", "page to write; its charts go into a folder of that name beside it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var files report.Files
	for _, f := range []struct {
		given, kept string
		to          **result.File
	}{
		{*in, report.MainName, &files.Main},
		{*conditions, report.ConditionsName, &files.Conditions},
		{*growth, report.GrowthName, &files.Growth},
	} {
		var err error
		if *f.to, err = newest(f.given, filepath.Join(report.Folder(*out), f.kept)); err != nil {
			return err
		}
	}
	return report.Write(files, *out)
}

// newest are the results of the first file that there is, nil if there is none.
func newest(names ...string) (*result.File, error) {
	for _, name := range names {
		f, err := result.Read(name)
		if errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(os.Stderr, "there is no %s\n", name)
			continue
		}
		return f, err
	}
	return nil, nil
}
