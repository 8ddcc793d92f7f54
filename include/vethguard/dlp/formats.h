/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats: the kinds of secrets that are known by their look, each with a name for policies and a text for people,
 * and what a policy says about them.
 */
#ifndef VETHGUARD_DLP_FORMATS_H
#define VETHGUARD_DLP_FORMATS_H

#include "vethguard/base/slice.h"

#define DLP_FORMATS_MAX 128 /* bits of a set of formats */
#define DLP_NONE UINT32_MAX /* no format */

/* What becomes of a request that carries a secret out. */
enum dlp_mode { DLP_OFF, DLP_ALERT, DLP_BLOCK, DLP_MODE_COUNT };

struct dlp_set {
	uint64_t bits[DLP_FORMATS_MAX / 64];
};

struct dlp_settings {
	uint32_t mode;         /* enum dlp_mode */
	struct dlp_set except; /* formats that are let pass */
};

/* The number of formats; they are numbered from 0, and a number may change with the version. */
uint32_t dlp_format_count(void);
const char *dlp_format_name(uint32_t format);  /* "github-token" */
const char *dlp_format_title(uint32_t format); /* "a GitHub token" */
/* The format of that name, or DLP_NONE. */
uint32_t dlp_format_find(struct slice name);
/* True if the host is the format's own service's, where such a key belongs into the head of a request. */
bool dlp_format_is_at_home(uint32_t format, struct slice host);
/* True if any service may use it, so that its look does not tell whose it is (a JWT): the fields that hold keys, and
 * cookies, may have it. */
bool dlp_format_is_common(uint32_t format);

static inline void dlp_set_add(struct dlp_set *set, uint32_t format)
{
	set->bits[format / 64] |= UINT64_C(1) << (format % 64);
}

static inline bool dlp_set_has(const struct dlp_set *set, uint32_t format)
{
	return set->bits[format / 64] >> (format % 64) & 1;
}

const char *dlp_mode_name(enum dlp_mode mode); /* "block" */

#endif
