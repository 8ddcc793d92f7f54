/* SPDX-License-Identifier: Apache-2.0 */
/* failure: one sentence about what went wrong, passed up to the code that prints it. */
#ifndef VETHGUARD_SRC_CLI_FAILURE_H
#define VETHGUARD_SRC_CLI_FAILURE_H

#define FAILURE_TEXT_MAX 1024

struct failure {
	char text[FAILURE_TEXT_MAX];
};

/* Sets the text from format, followed by ": " and the error's text unless error is 0. Returns
 * error, or -EINVAL if it is 0, so that callers can return this function's result. */
int failure_set(struct failure *failure, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

#endif
