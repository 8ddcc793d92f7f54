/* SPDX-License-Identifier: Apache-2.0 */
/* patterns: the literal that each format has, and what has to follow it. */
#ifndef VETHGUARD_SRC_DLP_PATTERNS_H
#define VETHGUARD_SRC_DLP_PATTERNS_H

#include "dlp/shapes.h"

#define PATTERN_RUN_MAX 512 /* bytes behind a literal that are looked at */

struct pattern {
	unsigned format;
	const char *literal;
	enum shape_class class;
	unsigned min;      /* bytes of the class behind the literal, at least */
	unsigned even;     /* shape_is_even(); 0: not asked */
	shape_check check; /* or NULL */
};

extern const struct pattern patterns[];
extern const size_t pattern_count;

#endif
