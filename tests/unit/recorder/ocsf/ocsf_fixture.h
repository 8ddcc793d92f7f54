/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of lines, and events that are rendered into it. */
#ifndef VETHGUARD_TESTS_UNIT_RECORDER_OCSF_OCSF_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_RECORDER_OCSF_OCSF_FIXTURE_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorder/ocsf/ocsf.h"

#include "../samples.h"

#define OUT_MAX (8u << 20)

static struct ocsf_sandbox sandbox;
static struct chain chain;
static struct buf out;

static inline int set_up(void **state)
{
	(void)state;
	buf_init(&out, OUT_MAX);
	assert_int_equal(chain_init(&chain), 0);
	assert_int_equal(ocsf_sandbox_init(&sandbox, 0x1122334455667788, SLICE("agent \"7\""),
	                         SLICE("coding-agent"), SLICE("0123456789abcdef")),
	        0);
	sandbox.gate4 = sample_ip("10.77.0.1");
	sandbox.gate6 = sample_ip("fd77::1");
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	ocsf_sandbox_fini(&sandbox);
	chain_fini(&chain);
	buf_fini(&out);
	return 0;
}

static inline void render(struct event event)
{
	assert_int_equal(ocsf_append(&out, &chain, &sandbox, &event), 0);
}

#endif
