/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a failure; see failure.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/failure.h"

int failure_set(struct failure *failure, int error, const char *format, ...)
{
	va_list args;
	size_t n;

	va_start(args, format);
	vsnprintf(failure->text, sizeof(failure->text), format, args);
	va_end(args);
	n = strlen(failure->text);
	if (error != 0)
		snprintf(failure->text + n, sizeof(failure->text) - n, ": %s",
		        strerror(error < 0 ? -error : error));
	return error != 0 ? error : -EINVAL;
}
