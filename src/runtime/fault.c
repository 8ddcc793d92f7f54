/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's lines have the form of runc's, so that an engine shows the last one of level "error" as
 * the reason. A file that cannot be written is no further fault: stderr has the sentence too.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vethguard/base/buf.h"
#include "vethguard/wire/json.h"
#include "runtime/fault.h"

#define LINE_MAX_BYTES (FAULT_MAX * 6 + 256) /* every byte escaped */

bool fault_set(struct fault *fault, const char *format, ...)
{
	va_list arguments;

	if (fault->text[0])
		return false;
	va_start(arguments, format);
	vsnprintf(fault->text, sizeof(fault->text), format, arguments);
	va_end(arguments);
	return false;
}

static void add_json(struct buf *line, const char *level, const char *text, const char *now)
{
	struct json j;

	json_begin(&j, line);
	json_put_object(&j, NULL);
	json_put_literal(&j, "level", level);
	json_put_string(&j, "msg", slice_from_string(text), 0);
	json_put_literal(&j, "time", now);
	json_put_end_object(&j);
	(void)buf_append(line, "\n", 1);
}

void fault_report(const struct fault *fault, const char *level, const char *log, bool json)
{
	char shown[FAULT_MAX], now[32];
	time_t seconds = time(NULL);
	struct buf line;
	struct tm tm;
	int fd;

	slice_escape_controls(slice_from_string(fault->text), shown, sizeof(shown));
	fprintf(stderr, "vethguard-runtime: %s: %s\n", level, shown);
	if (!log || !gmtime_r(&seconds, &tm) ||
	        strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		return;
	/* runc makes the file too, before anything else */
	fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
	if (fd < 0)
		return;
	buf_init(&line, LINE_MAX_BYTES);
	if (json)
		add_json(&line, level, shown, now);
	else
		(void)buf_printf(
		        &line, "time=\"%s\" level=%s msg=\"vethguard: %s\"\n", now, level, shown);
	(void)!write(fd, buf_bytes(&line), line.len);
	buf_fini(&line);
	close(fd);
}
