// SPDX-License-Identifier: Apache-2.0

package bide_test

import "log/slog"

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
