/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source is EMPTY until a worker asks; then the supervisor is ASKED for a descriptor, which is
 * READ to its end into secret memory; a valid value is HELD for its time (source_value.c) and then
 * wiped. One timer bounds asking and reading together. After a failure the supervisor is
 * not asked again for RETRY_MS, whatever a worker does, because asking may run a program; while a
 * value is held, the time doubles with each failure.
 *
 * A regular file cannot be watched for readiness, and a pipe usually has its bytes at once, so
 * reading is tried first, and the loop is used only on EAGAIN.
 */
#include "keeper/source_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <utlist.h>

#include "keeper/marker.h"
#include "keeper/source_trial.h"
#include "keeper/value.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"

#define RETRY_MS 1000
#define RETRY_DOUBLINGS_MAX 5
#define TIMEOUT_DEFAULT_MS 10000
#define ROOM_FIRST 4096
#define MESSAGE_SMALL 256 /* bytes of a question */

bool source_is_fetching(const struct source *source)
{
	return source->state == SOURCE_ASKED || source->state == SOURCE_READING;
}

void source_end_fetch(struct source *source)
{
	if (source->state == SOURCE_ASKED)
		DL_DELETE(source->sources->asked, source);
	loop_io_close(&source->io);
	loop_timer_close(&source->limit);
	secret_free(&source->incoming);
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
	source_enter(source, source->value.n ? SOURCE_HELD : SOURCE_EMPTY);
	source->forgotten = false;
}

void source_answer_all(struct source *source)
{
	const bool valid = source_value_is_valid(source);
	char error[SOURCE_ERROR_MAX];
	size_t n = source->waiting_count;

	snprintf(error, sizeof(error), "%s", source->error);
	if (source->revoked)
		snprintf(error, sizeof(error), "An operator has revoked credential \"%s\".",
		        source->name);
	source->waiting_count = 0;
	for (size_t i = 0; i < n; i++)
		source->on_answer(source, source->waiting[i],
		        valid ? secret_slice(&source->value) : (struct slice){"", 0},
		        valid ? source_value_ttl_ms(source) : 0,
		        valid ? source_value_renew_ms(source) : 0, valid ? NULL : error);
}

void source_proceed(struct source *source, const char *error, struct slice mark, uint32_t ttl_s)
{
	struct source_operation o = source->operation;

	if (!o.what)
		return;
	if (o.begun) {
		source->operation = (struct source_operation){0};
		source_trial_cancel(source);
		source->sources->on_operated(source, o.id, error, mark, ttl_s);
	} else if (!source_is_fetching(source)) {
		source->operation.begun = true;
		source_ask(source);
	}
}

/* sentence: for people, without a byte of the value. */
static void fail_silently(struct source *source, const char *sentence)
{
	unsigned doublings = source->failures_in_row < RETRY_DOUBLINGS_MAX ? source->failures_in_row
	                                                                   : RETRY_DOUBLINGS_MAX;

	source_end_fetch(source);
	source->failures++;
	source->failures_in_row++;
	source->failed_ms = clock_real_ms();
	source->retry_ms = loop_now_ms(source->sources->loop) +
	                   (source->value.n ? RETRY_MS << doublings : RETRY_MS);
	if (source->retry_ms < source->alone_ms)
		source->retry_ms = source->alone_ms;
	snprintf(source->error, sizeof(source->error), "%s", sentence);
	source_answer_all(source);
	source_proceed(source, source->error, SLICE(""), 0);
}

static void fail_saying(struct source *source, const char *sentence)
{
	log_warn("sandbox %s: %s%s", source->sandbox, sentence,
	        source_value_is_valid(source) ? " The earlier value is still used." : "");
	fail_silently(source, sentence);
}

static void fail(struct source *source, const char *what)
{
	char sentence[SOURCE_ERROR_MAX];

	snprintf(sentence, sizeof(sentence), "The source of credential \"%s\" %s.", source->name,
	        what);
	fail_saying(source, sentence);
}

static void on_timeout(struct loop_timer *timer)
{
	struct source *source = container_of(timer, struct source, limit);

	fail(source,
	        source->state == SOURCE_ASKED ? "was not opened in time" : "does not end in time");
}

/* True if the fetched value is to be held. It is not if it was fetched only for an operator's check
 * beside a value in use, or if the credential is revoked and this is not a rotation. */
static bool is_kept(const struct source *source)
{
	const struct source_operation *o = &source->operation;

	if (source->discard)
		return false;
	return !source->revoked || (o->begun && o->what == MESSAGE_CREDENTIAL_ROTATE);
}

/* Tells the operator what was fetched, if an operator asked for it; of a certificate whose key is
 * in a token, after a trial. */
static void tell_fetched(struct source *source, const uint8_t *bytes, int64_t lives_ms)
{
	const struct slice mark =
	        slice_of(bytes, source->sources->marker ? MESSAGE_CREDENTIAL_MARK_BYTES : 0);
	const uint32_t ttl_s = (uint32_t)(lives_ms / 1000);

	if (source->trial)
		source_trial_begin(source, mark, ttl_s);
	else
		source_proceed(source, NULL, mark, ttl_s);
}

static void finish(struct source *source)
{
	struct slice value = secret_slice(&source->incoming);
	const char *error = value_check(&value);
	const bool told = source->told_s > 0, forgotten = source->forgotten;
	int64_t lives_ms = (int64_t)(told ? source->told_s : source->ttl_s) * 1000;
	uint8_t mark[MESSAGE_CREDENTIAL_MARK_BYTES] = {0};

	if (!error && is_kept(source) && source_value_hold(source, value, told, lives_ms) < 0)
		error = "cannot be kept: there is no memory that may be locked";
	if (!error && source->key && source->operation.begun &&
	        !source_trial_prepare(source, value))
		error = "cannot be tried: there is no memory";
	if (error) {
		fail(source, error);
		return;
	}
	if (source->sources->marker)
		marker_mark(source->sources->marker, value, mark);
	source->revoked = source->revoked && !is_kept(source);
	source_end_fetch(source);
	source->fetches++;
	source->failures_in_row = 0;
	source->retry_ms = 0;
	source->fetched_ms = clock_real_ms();
	source_answer_all(source);
	if (forgotten)
		source_value_drop(source);
	tell_fetched(source, mark, lives_ms);
}
/* Makes room for at least one more byte; one byte over the limit shows that there is too much. */
static int make_room(struct source *source)
{
	struct secret larger;
	struct secret *so_far = &source->incoming;
	size_t cap = so_far->cap ? 2 * so_far->cap : ROOM_FIRST;
	int rc;

	if (so_far->n < so_far->cap)
		return 0;
	rc = secret_alloc(&larger, cap < SECRET_MAX ? cap : SECRET_MAX);
	if (rc < 0)
		return rc;
	if (so_far->n > 0)
		memcpy(larger.p, so_far->p, so_far->n);
	larger.n = so_far->n;
	secret_free(so_far);
	*so_far = larger;
	return 0;
}

/* Reads on. Returns true if nothing more is there now: the loop will report it. */
static bool read_on(struct source *source)
{
	for (;;) {
		struct secret *value = &source->incoming;
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
	DL_DELETE(source->sources->asked, source);
	source_enter(source, SOURCE_READING);
	source->fd = fd;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) {
		fail(source, "cannot be read");
		return;
	}
	if (read_on(source) &&
	        loop_io_open(source->sources->loop, &source->io, fd, LOOP_READ, on_readable) < 0)
		fail(source, "cannot be waited for");
}

void source_ask(struct source *source)
{
	struct sources *sources = source->sources;
	const struct source_operation *o = &source->operation;
	const bool valid = source_value_is_valid(source);
	struct message_source_open question = {.sandbox_id = source->sandbox_id,
	        .credential = source->credential,
	        .generation = source->generation,
	        .renew = valid && !o->begun,
	        .discard = o->begun && o->what == MESSAGE_CREDENTIAL_CHECK &&
	                   (valid || source->revoked)};
	uint8_t message[MESSAGE_SMALL];
	int rc;

	if (source_value_open(source) < 0 ||
	        loop_timer_open(sources->loop, &source->limit, on_timeout) < 0) {
		fail(source, "cannot be asked for: there is no memory");
		return;
	}
	loop_timer_set(
	        &source->limit, source->timeout_ms ? source->timeout_ms : TIMEOUT_DEFAULT_MS);
	source_enter(source, SOURCE_ASKED);
	source->discard = question.discard;
	source->renewing = question.renew;
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

/* A random delay, so that sandboxes that were refused together do not ask again together. */
static int64_t jitter_ms(void)
{
	uint16_t random;

	random_bytes(&random, sizeof(random));
	return random % RETRY_MS;
}

/* After a renewal that came too late or failed, the waiting questions need another value. Returns
 * true if one is being asked for. */
static bool ask_anew(struct source *source)
{
	if (!source->renewing || source_value_is_valid(source) || source->waiting_count == 0)
		return false;
	source_value_drop(source);
	source_end_fetch(source);
	source_ask(source);
	return true;
}

/* The lease of the held value was renewed. */
static int live_on(struct source *source, uint32_t lives_s)
{
	if (!source->renewing || lives_s == 0)
		return -EBADMSG;
	if (!source->value.n) { /* the value has ended, or was forgotten, in the meantime */
		if (!ask_anew(source))
			fail_silently(source, "its value expired before it was renewed");
		return 0;
	}
	source_value_extend(source, (int64_t)lives_s * 1000);
	source_end_fetch(source);
	source->failures_in_row = 0;
	source->retry_ms = 0;
	source_answer_all(source);
	source_proceed(source, NULL, SLICE(""), 0);
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
	if (answer.same)
		return live_on(source, answer.ttl_s);
	if (answer.error.n == 0) {
		fail_silently(source, "The sandbox is ending.");
		return 0;
	}
	if (!answer.retry_s && ask_anew(source))
		return 0;
	slice_escape(answer.error, sentence, sizeof(sentence));
	if (answer.retry_s)
		source->alone_ms =
		        loop_now_ms(sources->loop) + (int64_t)answer.retry_s * 1000 + jitter_ms();
	fail_saying(source, sentence);
	return 0;
}
