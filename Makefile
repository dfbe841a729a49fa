# SPDX-License-Identifier: Apache-2.0

GO   ?= go
T    ?= 30s
N    ?= 2000
LINT := $(GO) tool -modfile=tools/go.mod golangci-lint

.DEFAULT_GOAL := help

## help: list the targets
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## demo: watch the orders of a shop time out, on a directory
demo:
	$(GO) run ./cmd/bide demo

## test: lint, run everything with the race detector, then what measures time, and fuzz for a while
test: export BIDE_REQUIRE_REDIS = 1
test: setup tidy-check lint race programs lag fuzz-short

## setup: install what the tests need and Go modules do not bring
setup:
	@./.ci/setup

## race: all tests with the race detector, and a tenth of the random programs
race:
	BIDE_PROGRAMS=200 $(GO) test -race -shuffle=on -timeout 15m ./...
	cd importtest && $(GO) test -race -shuffle=on ./...

## short: tests that need no server and little time
short:
	$(GO) test -short -shuffle=on ./...

## lag: how late messages come, one engine after another, on a machine as idle as possible
lag:
	$(GO) test -tags timed -count=1 -v ./internal/lag

## torture: every fault, everywhere, for T (30s), from SEED if set, only ON=one|clock|directory|sentinel|cluster if set;
##          SERVER=/path/to/redis-server runs it, and the conformance suite, on another server
torture: export BIDE_REDIS_SERVER = $(SERVER)
torture: setup
	BIDE_TORTURE_FOR=$(T) BIDE_SEED=$(SEED) BIDE_TORTURE_ON=$(ON) $(GO) test -count=1 -timeout 0 -v ./internal/torture
ifdef SERVER
	$(GO) test -count=1 -timeout 30m -run '^Test(Engine|Survives)' ./redisstore
endif

## torture-failovers: N (100) failovers of a Sentinel set and of a Cluster, without the restart of a process
torture-failovers: N = 100
torture-failovers: setup
	BIDE_FAILOVERS=$(N) BIDE_SEED=$(SEED) BIDE_TORTURE_ON=$(ON) $(GO) test -count=1 -timeout 0 -v -run TestFailovers ./internal/torture

## soak: everything at a moderate rate with faults for T (30s; an hour is T=1h) on Redis and on a directory (only ON=one|directory
##       if set), and nothing may grow
soak: setup
	BIDE_SOAK_FOR=$(T) BIDE_SEED=$(SEED) BIDE_TORTURE_ON=$(ON) $(GO) test -count=1 -timeout 0 -v -run TestSoak ./internal/torture

## fuzz: each fuzz target for TIME (5m), as many at once as there are processors; ON=./pebblestore takes those of one package
fuzz: TIME ?= 5m
fuzz: ON ?= ./...
fuzz:
	@./.ci/fuzz $(TIME) $(ON)

## fuzz-short: each fuzz target for 20 s
fuzz-short:
	@./.ci/fuzz 20s ./...

## programs: N (2000) random programs against each engine, with their seed and what they met
programs:
	BIDE_PROGRAMS=$(N) $(GO) test -count=1 -timeout 60m -v -run '^Test(Engine|ConformanceInMemory)$$/^Programs$$|^TestSpreadPrograms$$' \
		./memstore ./pebblestore ./redisstore

## bench: bide beside asynq, every workload, under five minutes; writes docs/benchmarks.md
bench: setup
	$(MAKE) -C bench bench

## bench-all: bide beside every peer that is installed, longer
bench-all: setup
	$(MAKE) -C bench bench-all

## microbench: micro-benchmarks of the engines and the front, each for T (30s)
microbench: setup
	$(GO) test -run '^$$' -bench . -benchtime $(T) . ./memstore ./pebblestore ./redisstore

## cover: coverage by package
cover:
	$(GO) test -coverpkg=./... -coverprofile=cover.out ./... && $(GO) tool cover -func=cover.out | tail -1

## lint: golangci-lint and the import rules
lint:
	$(LINT) run --build-tags timed ./...
	cd importtest && $(GO) tool -modfile=../tools/go.mod golangci-lint run ./...

## fmt: format
fmt:
	$(LINT) fmt ./...

## fix: apply what go fix modernizes
fix:
	$(GO) fix ./...

## tidy-check: go.mod and go.sum are as go mod tidy makes them
tidy-check:
	$(GO) mod tidy -diff
	cd importtest && $(GO) mod tidy -diff

## hooks: run format, vet and short tests before each commit
hooks:
	git config core.hooksPath .githooks

.PHONY: help demo test setup race short lag torture torture-failovers soak fuzz fuzz-short programs bench bench-all microbench cover lint fmt fix tidy-check hooks
