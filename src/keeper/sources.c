/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source is EMPTY until a worker asks; then the supervisor is ASKED for a descriptor, which is
 * READ to its end into secret memory; a valid value is HELD for its ttl and then wiped. One timer
 * bounds asking and reading together. Questions that arrive meanwhile wait for the same answer.
 * After a failure the supervisor is not asked again for RETRY_MS, whatever a worker does, because
 * asking may run a program.
 *
 * A regular file cannot be watched for readiness, and a pipe usually has its bytes at once, so
 * reading is tried first, and the loop is used only on EAGAIN.
 *
 * The end of a held value is on CLOCK_BOOTTIME, as in the workers' stores (credential/store.c): the
 * timer stands still while the machine sleeps, so each question checks whether the value has
 * expired.
 */
#include "keeper/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <utlist.h>

#include "keeper/value.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define RETRY_MS 1000
#define TIMEOUT_DEFAULT_MS 10000
#define MARGIN_MAX_MS 30000
#define ROOM_FIRST 4096
#define MESSAGE_SMALL 256 /* bytes of a question */

static void unlink_asked(struct source *source)
{
	if (source->state == SOURCE_ASKED)
		DL_DELETE(source->sources->asked, source);
}

static const char *const state_names[] = {
        [SOURCE_EMPTY] = "EMPTY",
        [SOURCE_ASKED] = "ASKED",
        [SOURCE_READING] = "READING",
        [SOURCE_HELD] = "HELD",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == SOURCE_STATE_COUNT, "a name per state");

/* Sets the state; nothing else does. */
static void enter(struct source *source, enum source_state state)
{
	if (source->state != state)
		log_debug("%s: credential %s: %s -> %s", source->sandbox ? source->sandbox : "",
		        source->name, state_names[source->state], state_names[state]);
	source->state = state;
}

/* Releases everything that the next state does not need. */
static void leave_state(struct source *source)
{
	unlink_asked(source);
	loop_io_close(&source->io);
	loop_timer_close(&source->timer);
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
	enter(source, SOURCE_EMPTY);
	source->forgotten = false;
}

void source_init(struct source *source)
{
	source->fd = -1;
}

void source_fini(struct source *source)
{
	leave_state(source);
	secret_free(&source->value);
}

/* Seconds the held value is still valid: 0 for ever, and never 0 for one that ends. */
static uint32_t ttl_left(const struct source *source)
{
	int64_t left = source->expires_ms - clock_boot_ms();

	if (source->expires_ms == 0)
		return 0;
	return left <= 1000 ? 1 : (uint32_t)(left / 1000);
}

static void answer_all(struct source *source)
{
	bool held = source->state == SOURCE_HELD;
	struct slice value = held ? secret_slice(&source->value) : (struct slice){"", 0};
	size_t n = source->waiting_count;

	source->waiting_count = 0;
	for (size_t i = 0; i < n; i++)
		source->on_answer(source, source->waiting[i], value, held ? ttl_left(source) : 0,
		        held ? NULL : source->error);
}

/* sentence: for people, without a byte of the value. */
static void fail_silently(struct source *source, const char *sentence)
{
	leave_state(source);
	secret_free(&source->value);
	source->retry_ms = loop_now_ms(source->sources->loop) + RETRY_MS;
	snprintf(source->error, sizeof(source->error), "%s", sentence);
	answer_all(source);
}

static void fail_saying(struct source *source, const char *sentence)
{
	log_warn("sandbox %s: %s", source->sandbox, sentence);
	fail_silently(source, sentence);
}

static void fail(struct source *source, const char *what)
{
	char sentence[SOURCE_ERROR_MAX];

	snprintf(sentence, sizeof(sentence), "The source of credential \"%s\" %s.", source->name,
	        what);
	fail_saying(source, sentence);
}

static void expire(struct source *source)
{
	leave_state(source);
	secret_free(&source->value);
}

static bool is_over(const struct source *source)
{
	return source->state == SOURCE_HELD && source->expires_ms > 0 &&
	       clock_boot_ms() >= source->expires_ms;
}

static void on_expiry(struct loop_timer *timer)
{
	expire(container_of(timer, struct source, timer));
}

static void on_timeout(struct loop_timer *timer)
{
	struct source *source = container_of(timer, struct source, timer);

	fail(source,
	        source->state == SOURCE_ASKED ? "was not opened in time" : "does not end in time");
}

/* Copies the value to memory of its size; the larger memory it was read into is wiped. */
static int keep_value(struct source *source, struct slice value)
{
	struct secret copy;
	int rc = secret_copy(&copy, value.p, value.n);

	secret_free(&source->value);
	if (rc == 0)
		source->value = copy;
	return rc;
}

/* How long the value is held. One whose service tells its end is given up a little before, so that
 * no request leaves with a value that ends on its way. */
static int64_t hold_ms(const struct source *source)
{
	int64_t told_ms = (int64_t)source->told_s * 1000, margin_ms = told_ms / 10;

	if (!told_ms)
		return (int64_t)source->ttl_s * 1000;
	return told_ms - (margin_ms < MARGIN_MAX_MS ? margin_ms : MARGIN_MAX_MS);
}

static void finish(struct source *source)
{
	struct slice value = secret_slice(&source->value);
	const char *error = value_check(&value);
	int64_t ttl_ms = hold_ms(source);
	bool forgotten = source->forgotten;

	if (!error && keep_value(source, value) < 0)
		error = "cannot be kept: there is no memory that may be locked";
	if (error) {
		fail(source, error);
		return;
	}
	leave_state(source);
	source->expires_ms = 0;
	if (ttl_ms > 0) {
		if (loop_timer_open(source->sources->loop, &source->timer, on_expiry) < 0) {
			fail(source, "cannot be kept: there is no memory");
			return;
		}
		loop_timer_set(&source->timer, ttl_ms);
		source->expires_ms = clock_boot_ms() + ttl_ms;
	}
	enter(source, SOURCE_HELD);
	answer_all(source);
	if (forgotten)
		expire(source);
}

void source_forget(struct source *source)
{
	if (source->state == SOURCE_HELD)
		expire(source);
	else
		source->forgotten = source->state != SOURCE_EMPTY;
}

/* Makes room for at least one more byte; one byte over the limit shows that there is too much. */
static int make_room(struct source *source)
{
	struct secret larger;
	size_t cap = source->value.cap ? 2 * source->value.cap : ROOM_FIRST;
	int rc;

	if (source->value.n < source->value.cap)
		return 0;
	rc = secret_alloc(&larger, cap < SECRET_MAX ? cap : SECRET_MAX);
	if (rc < 0)
		return rc;
	if (source->value.n > 0)
		memcpy(larger.p, source->value.p, source->value.n);
	larger.n = source->value.n;
	secret_free(&source->value);
	source->value = larger;
	return 0;
}

/* Reads on. Returns true if nothing more is there now: the loop will report it. */
static bool read_on(struct source *source)
{
	for (;;) {
		struct secret *value = &source->value;
		ssize_t n;

		if (value->n > VALUE_MAX) {
			finish(source);
			return false;
		}
		if (make_room(source) < 0) {
			fail(source, "cannot be read: there is no memory that may be locked");
			return false;
		}
		n = read(source->fd, value->p + value->n, value->cap - value->n);
		if (n > 0) {
			value->n += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return true;
		if (n < 0)
			fail(source, "cannot be read");
		else
			finish(source);
		return false;
	}
}

static void on_readable(struct loop_io *io, unsigned events)
{
	(void)events;
	read_on(container_of(io, struct source, io));
}

static void start_reading(struct source *source, int fd)
{
	unlink_asked(source);
	enter(source, SOURCE_READING);
	source->fd = fd;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) {
		fail(source, "cannot be read");
		return;
	}
	if (read_on(source) &&
	        loop_io_open(source->sources->loop, &source->io, fd, LOOP_READ, on_readable) < 0)
		fail(source, "cannot be waited for");
}

static void ask(struct source *source)
{
	struct sources *sources = source->sources;
	struct message_source_open question = {
	        source->sandbox_id, source->credential, source->generation};
	uint8_t message[MESSAGE_SMALL];
	int rc;

	if (loop_timer_open(sources->loop, &source->timer, on_timeout) < 0) {
		fail(source, "cannot be asked for: there is no memory");
		return;
	}
	loop_timer_set(
	        &source->timer, source->timeout_ms ? source->timeout_ms : TIMEOUT_DEFAULT_MS);
	enter(source, SOURCE_ASKED);
	source->question = ++sources->last_question;
	DL_PREPEND(sources->asked, source);
	rc = ipc_send(sources->supervisor, message,
	        message_source_open_encode(
	                message, sizeof(message), MESSAGE_SOURCE_OPEN, source->question, &question),
	        NULL, 0);
	if (rc == -EPIPE) /* the keeper ends with it */
		fail_silently(source, "The supervisor is gone.");
	else if (rc < 0)
		fail(source, "cannot be asked for: there is no room for the question");
}

int source_get(struct source *source, uint64_t question)
{
	bool refused;

	if (is_over(source))
		expire(source);
	refused = source->state == SOURCE_EMPTY &&
	          loop_now_ms(source->sources->loop) < source->retry_ms;
	if (source->waiting_count == SOURCE_WAITING_MAX)
		return -EBADMSG;
	source->waiting[source->waiting_count++] = question;
	if (source->state == SOURCE_HELD || refused)
		answer_all(source);
	else if (source->state == SOURCE_EMPTY)
		ask(source);
	return 0;
}

int sources_on_message(struct sources *sources, struct ipc_message *message)
{
	struct message_source answer;
	struct source *source = sources->asked;
	char sentence[SOURCE_ERROR_MAX];

	if (message_source_decode(&message->body, &answer) < 0 ||
	        message->fd_count != (answer.opened ? 1 : 0))
		return -EBADMSG;
	while (source && source->question != message->head.id)
		source = source->next;
	if (!source) /* the sandbox has gone, or the time limit has passed */
		return 0;
	if (answer.opened) {
		source->told_s = answer.ttl_s;
		start_reading(source, message->fds[0]);
		message->fds[0] = -1;
		return 0;
	}
	if (answer.error.n == 0) {
		fail_silently(source, "The sandbox is ending.");
		return 0;
	}
	slice_escape(answer.error, sentence, sizeof(sentence));
	fail_saying(source, sentence);
	return 0;
}
