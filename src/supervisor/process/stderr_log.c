/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A role may be controlled by an attacker whose data it parses, and standard error is a person's
 * terminal: so no role has it. Each role writes into its own pipe. Here its lines are escaped,
 * prefixed with its name if they do not begin with it, and counted. A role that exceeds its budget
 * is not read until it has regained some: the pipe fills up, what does not fit is lost to the role
 * (the pipe does not block), and the supervisor does not read megabytes to discard them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/base/slice.h"
#include "supervisor/process/stderr_log.h"

#define ESCAPED_MAX (4 * ROLE_TEXT_LINE_MAX + 1)
#define LINE_COST 16 /* each line has a fixed cost too: many short lines are also a flood */

static void show(struct stderr_log *text)
{
	char escaped[ESCAPED_MAX];

	slice_escape_controls(slice_of(text->line, text->n), escaped, sizeof(escaped));
	text->n = 0;
	text->budget -= (int64_t)log_relay(text->program,
	                        &(struct log_subject){text->sandbox, text->program}, escaped,
	                        strlen(escaped)) +
	                LINE_COST;
}

static void take(struct stderr_log *text, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n && text->budget > 0; i++) {
		if (bytes[i] != '\n')
			text->line[text->n++] = bytes[i];
		else if (text->n == 0)
			text->budget--;
		if (text->n > 0 && (bytes[i] == '\n' || text->n == sizeof(text->line)))
			show(text);
	}
}

static void earn(struct stderr_log *text)
{
	int64_t now_ms = loop_now_ms(text->pause.loop);
	int64_t earned = (now_ms - text->at_ms) * ROLE_TEXT_PER_S / 1000;

	if (earned <= 0)
		return;
	text->at_ms = now_ms;
	text->budget += earned;
	if (text->budget > ROLE_TEXT_BURST)
		text->budget = ROLE_TEXT_BURST;
}

/* Returns false if nothing more is there, or at the end. */
static bool read_some(struct stderr_log *text)
{
	char bytes[ROLE_TEXT_LINE_MAX];
	ssize_t n = read(text->fd, bytes, sizeof(bytes));

	if (n > 0)
		take(text, bytes, (size_t)n);
	else if (n == 0)
		loop_io_close(&text->io); /* the pidfd reports the process's exit */
	return n > 0;
}

static void on_ready(struct loop_io *io, unsigned events)
{
	struct stderr_log *text = container_of(io, struct stderr_log, io);

	(void)events;
	earn(text);
	while (text->budget > 0 && read_some(text))
		;
	if (text->budget > 0)
		return;
	log_warn("%s writes too much: the rest is not shown", text->program);
	text->n = 0;
	loop_io_close(io);
	loop_timer_set(&text->pause, (ROLE_TEXT_RESUME - text->budget) * 1000 / ROLE_TEXT_PER_S);
}

static int listen_to(struct stderr_log *text, struct loop *loop)
{
	return loop_io_open_level(loop, &text->io, text->fd, LOOP_READ, on_ready);
}

static void on_pause_over(struct loop_timer *timer)
{
	struct stderr_log *text = container_of(timer, struct stderr_log, pause);

	if (listen_to(text, timer->loop) != 0)
		log_error("the output of %s is not shown any more: no memory", text->program);
}

int stderr_log_open(struct loop *loop, struct stderr_log *text, const char *program)
{
	int ends[2];

	*text = (struct stderr_log){.fd = -1, .budget = ROLE_TEXT_BURST};
	snprintf(text->program, sizeof(text->program), "%s", program);
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	text->fd = ends[0];
	text->at_ms = loop_now_ms(loop);
	int rc = loop_timer_open(loop, &text->pause, on_pause_over);
	if (!rc)
		rc = listen_to(text, loop);
	if (!rc)
		return ends[1];
	close(ends[1]);
	stderr_log_close(text);
	return rc;
}

void stderr_log_close(struct stderr_log *text)
{
	if (text->fd < 0)
		return;
	while (text->budget > 0 && read_some(text))
		;
	if (text->n > 0 && text->budget > 0)
		show(text);
	loop_io_close(&text->io);
	loop_timer_close(&text->pause);
	close(text->fd);
	text->fd = -1;
}
