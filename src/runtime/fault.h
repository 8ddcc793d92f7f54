/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault: one sentence that says why a call was refused, and how the engine gets to hear it: on
 * stderr, and as a line of the file that the engine named with --log, where containerd and Docker
 * look for it.
 */
#ifndef VETHGUARD_SRC_RUNTIME_FAULT_H
#define VETHGUARD_SRC_RUNTIME_FAULT_H

#include <stdbool.h>

#define FAULT_MAX 2048

struct fault {
	char text[FAULT_MAX];
};

/* Returns false, for "return fault_set(...)". A text that is there already stays: the first reason
 * counts. */
bool fault_set(struct fault *fault, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes the sentence to stderr and, if log is not NULL, to that file: as JSON or as text. */
void fault_report(const struct fault *fault, const char *level, const char *log, bool json);

#endif
