/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is built on the stack and leaves with a single write(2), so that the lines of several
 * programs that share one stderr never mix. No stdio, no allocation, no lock: it may be called with
 * anything else already broken. Control bytes inside a message become '?', so that whatever slipped
 * into it still cannot start a line of its own.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"

#define LOG_LINE_MAX 2048 /* bytes with the newline; longer messages are cut */

static struct {
	const char *program;
	enum log_level level;
} log_state = {"vethguard", LOG_LEVEL_INFO};

static const char *const level_names[] = {
        [LOG_LEVEL_ERROR] = "error",
        [LOG_LEVEL_WARN] = "warning",
        [LOG_LEVEL_INFO] = "info",
        [LOG_LEVEL_DEBUG] = "debug",
};
_Static_assert(
        sizeof(level_names) / sizeof(level_names[0]) == LOG_LEVEL_DEBUG + 1, "a name per level");

void log_open(const char *program, enum log_level level)
{
	log_state.program = program;
	log_state.level = level;
}

enum log_level log_level(void)
{
	return log_state.level;
}

/* U+0080 to U+009F in UTF-8: U+009B begins a sequence as ESC [ does. */
static bool is_c1(const unsigned char *p, size_t left)
{
	return left > 1 && p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;
}

static void mask_controls(char *text, size_t n)
{
	unsigned char *p = (unsigned char *)text;

	for (size_t i = 0; i < n; i++) {
		if (p[i] < 0x20 || p[i] == 0x7f)
			p[i] = '?';
		if (is_c1(p + i, n - i))
			p[i] = p[i + 1] = '?';
	}
}

__attribute__((format(printf, 2, 0))) static void write_line(
        enum log_level level, const char *format, va_list args)
{
	char line[LOG_LINE_MAX];
	size_t room = sizeof(line) - 1; /* the newline */
	size_t n;
	int printed;

	printed = snprintf(line, room, "%s: %s: ", log_state.program, level_names[level]);
	n = printed < 0 ? 0 : (size_t)printed;
	if (n > room - 1)
		n = room - 1;
	printed = vsnprintf(line + n, room - n, format, args);
	if (printed > 0)
		n += (size_t)printed < room - n ? (size_t)printed : room - n - 1;
	mask_controls(line, n);
	line[n++] = '\n';
	/* Nobody is left to tell when stderr itself is gone. */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

void log_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(LOG_LEVEL_ERROR, format, args);
	va_end(args);
}

void log_warn(const char *format, ...)
{
	va_list args;

	if (log_state.level < LOG_LEVEL_WARN)
		return;
	va_start(args, format);
	write_line(LOG_LEVEL_WARN, format, args);
	va_end(args);
}

void log_info(const char *format, ...)
{
	va_list args;

	if (log_state.level < LOG_LEVEL_INFO)
		return;
	va_start(args, format);
	write_line(LOG_LEVEL_INFO, format, args);
	va_end(args);
}

void log_debug(const char *format, ...)
{
	va_list args;

	if (log_state.level < LOG_LEVEL_DEBUG)
		return;
	va_start(args, format);
	write_line(LOG_LEVEL_DEBUG, format, args);
	va_end(args);
}

void die(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(LOG_LEVEL_ERROR, format, args);
	va_end(args);
	exit(status);
}
