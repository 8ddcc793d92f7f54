/* SPDX-License-Identifier: Apache-2.0 */
/* failure: one sentence about what went wrong, carried up to the place that prints it. */
#ifndef VETHGUARD_SRC_CLI_FAILURE_H
#define VETHGUARD_SRC_CLI_FAILURE_H

#define FAILURE_TEXT_MAX 1024

struct failure {
	char text[FAILURE_TEXT_MAX];
};

/* Sets the text from format, with ": " and the error's own words behind it where error is not 0.
 * Returns error, or -EINVAL where it is 0, so that callers can return what this returns. */
int failure_set(struct failure *failure, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

#endif
