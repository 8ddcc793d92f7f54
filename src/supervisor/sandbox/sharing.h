/* SPDX-License-Identifier: Apache-2.0 */
/* sharing: who shares a budget: sandboxes with the same value of a label, under policies that the
 * same user named. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_SHARING_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_SHARING_H

#include <stdbool.h>
#include <stdint.h>

#include "vethguard/base/slice.h"

struct generation;
struct sandbox;

/* "UID\nKEY=VALUE" */
#define SHARING_TEXT_MAX (MESSAGE_LABELS_MAX + 32)

/* Writes who shares with this sandbox by that label. Returns false if the sandbox does not have the
 * label. */
bool sharing_text(const struct sandbox *s, const struct generation *g, struct slice key,
        char out[SHARING_TEXT_MAX]);
/* A number for that text. */
uint64_t sharing_digest(const char *text);

#endif
