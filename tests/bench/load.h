/* SPDX-License-Identifier: Apache-2.0 */
/* What the load's two halves share: load.c (HTTP/1.1) and load_http2.c. */
#ifndef VETHGUARD_TESTS_BENCH_LOAD_H
#define VETHGUARD_TESTS_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "net.h"

/* One command's words. */
struct load_order {
	char target[256], name[256], through[256], proof[256];
	unsigned conns, requests, streams;
	unsigned long long bytes;
	bool resume;
};

/* What it did. */
struct load_count {
	unsigned done, resumed;
	uint64_t bytes;
};

/* Opens order->conns connections and serves one request on each. */
void load_http2_open(const struct load_order *order, struct load_count *count);
/* order->requests over all of them, order->streams at once on each. */
void load_http2_go(const struct load_order *order, struct load_count *count);
void load_http2_close(void);

#endif
