// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"

	"github.com/bidemq/bide/bench/report"
	"github.com/bidemq/bide/bench/result"
)

// writeReport makes the report from results.
func writeReport(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	in := flags.String("in", "results.json", "file with the results")
	out := flags.String("out", "../docs/benchmarks.md", "page to write; its charts go into a folder of that name beside it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	f, err := result.Read(*in)
	if err != nil {
		return err
	}
	return report.Write(f, *out)
}
