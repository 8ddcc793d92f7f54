/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is built on the stack and written with a single write(2), so lines of several programs on
 * one stderr never mix. No stdio, no allocation, no lock: logging works when everything else is
 * broken. Control bytes inside a message become '?', so that nothing in a message can start a line
 * of its own.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/log.h"

#define LOG_LINE_MAX 2048         /* bytes with the newline; longer messages are cut */
#define LOG_RELAY_MAX (16 * 1024) /* a role's line, escaped, and its name */

static struct {
	const char *program;
	enum log_level level;
	log_sink *sink;
} log_state = {"vethguard", LOG_LEVEL_INFO, NULL};

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

void log_open_role(const char *program, int argc, char *const *argv, int status)
{
	bool debug = argc == 2 && strcmp(argv[1], LOG_DEBUG_ARGUMENT) == 0;

	log_open(program, debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	if (argc > 1 && !debug)
		die(status, "this program is started by vethguardd and takes no arguments");
}

void log_to(log_sink *sink)
{
	log_state.sink = sink;
}

/* True for U+0080 to U+009F in UTF-8: U+009B begins a control sequence like ESC [. */
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

/* How many bytes snprintf() really wrote, without its NUL. */
static size_t written(int printed, size_t room)
{
	if (printed < 0)
		return 0;
	return (size_t)printed < room ? (size_t)printed : room - 1;
}

static void write_stderr(const char *line, size_t n)
{
	/* if stderr is gone, nobody is left to tell */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

/* sandbox: NULL if the message is not about one. */
__attribute__((format(printf, 3, 0))) static void write_line(
        enum log_level level, const char *sandbox, const char *format, va_list args)
{
	char line[LOG_LINE_MAX];
	size_t room = sizeof(line) - 1; /* the newline */
	size_t n, begin;

	n = written(snprintf(line, room, "%s: %s: ", log_state.program, level_names[level]), room);
	begin = n;
	if (sandbox && !log_state.sink)
		n += written(snprintf(line + n, room - n, "%s: ", sandbox), room - n);
	n += written(vsnprintf(line + n, room - n, format, args), room - n);
	mask_controls(line, n);
	if (log_state.sink) {
		log_state.sink(&(struct log_record){
		        level, log_state.program, {.sandbox = sandbox}, line + begin, n - begin});
		return;
	}
	line[n++] = '\n';
	write_stderr(line, n);
}

void log_sandbox(enum log_level level, const char *sandbox, const char *format, ...)
{
	va_list args;

	if (log_state.level < level)
		return;
	va_start(args, format);
	write_line(level, sandbox, format, args);
	va_end(args);
}

/* The length of the level that a line begins with ("error: "), or 0; *level is set to it. */
static size_t line_level(const char *line, size_t n, enum log_level *level)
{
	for (size_t i = 0; i <= LOG_LEVEL_DEBUG; i++) {
		size_t name_n = strlen(level_names[i]);

		if (n < name_n + 2 || memcmp(line, level_names[i], name_n) != 0 ||
		        memcmp(line + name_n, ": ", 2) != 0)
			continue;
		*level = (enum log_level)i;
		return name_n + 2;
	}
	return 0;
}

size_t log_relay(const char *program, const struct log_subject *subject, const char *line, size_t n)
{
	struct log_record record = {LOG_LEVEL_WARN, program, *subject, line, n};
	size_t name_n = strlen(program);
	bool named = n > name_n + 1 && memcmp(line, program, name_n) == 0 &&
	             memcmp(line + name_n, ": ", 2) == 0;
	char out[LOG_RELAY_MAX];

	if (log_state.sink) {
		size_t skip = named ? name_n + 2 : 0;

		skip += line_level(line + skip, n - skip, &record.level);
		record.text += skip;
		record.n -= skip;
		log_state.sink(&record);
		return n;
	}
	size_t m =
	        written(snprintf(out, sizeof(out), "%s%s%.*s\n", named ? "" : program,
	                        named ? "" : ": ", (int)(n < sizeof(out) ? n : sizeof(out)), line),
	                sizeof(out));
	out[m - 1] = '\n'; /* also if the line was cut */
	write_stderr(out, m);
	return m;
}

void log_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(LOG_LEVEL_ERROR, NULL, format, args);
	va_end(args);
}

void log_warn(const char *format, ...)
{
	va_list args;

	if (log_state.level < LOG_LEVEL_WARN)
		return;
	va_start(args, format);
	write_line(LOG_LEVEL_WARN, NULL, format, args);
	va_end(args);
}

void log_info(const char *format, ...)
{
	va_list args;

	if (log_state.level < LOG_LEVEL_INFO)
		return;
	va_start(args, format);
	write_line(LOG_LEVEL_INFO, NULL, format, args);
	va_end(args);
}

void log_debug(const char *format, ...)
{
	va_list args;

	if (log_state.level < LOG_LEVEL_DEBUG)
		return;
	va_start(args, format);
	write_line(LOG_LEVEL_DEBUG, NULL, format, args);
	va_end(args);
}

void die(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(LOG_LEVEL_ERROR, NULL, format, args);
	va_end(args);
	exit(status);
}
