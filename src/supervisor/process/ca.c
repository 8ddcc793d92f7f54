/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One question at a time. The keeper writes a change into a new file; when that has taken the old
 * one's place, the keeper is told, and the change is in force. A keeper that dies before is
 * followed by one that reads whichever file has the name.
 *
 * Checks come after each start of a keeper, before it hears of any worker; after each reload of
 * all; every hour; and at once when the clock was set or the machine has slept.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/daemon/ca_files.h"
#include "supervisor/daemon/root_file.h"
#include "supervisor/supervisor.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

const struct message_keeper_ca *ca_view(const struct supervisor *sv)
{
	return sv->ca_life.known ? &sv->ca_life.view : NULL;
}

bool ca_leads(const struct supervisor *sv, struct slice root)
{
	static const uint8_t oldest[MESSAGE_FINGERPRINT_BYTES];
	const struct message_keeper_ca *view = ca_view(sv);

	if (root.n == 0)
		return true;
	if (!view || view->count == 0 || view->unusable)
		return false;
	return slice_equals(view->cas[0].root, root) ||
	       (view->count == 1 && slice_equals(root, slice_of(oldest, sizeof(oldest))));
}

/* The file for what changes. Where none can be made, a keeper that has just been started is still
 * needed: it is given one that is always full, and changes nothing. Returns a descriptor or -errno.
 */
static int open_file(const struct supervisor *sv, enum message_ca_what what)
{
	int fd = root_file_next(sv->ca), full;

	if (fd >= 0 || what != MESSAGE_CA_CHECK)
		return fd;
	log_error("the CAs cannot change, because no file can be made beside root.key: %s",
	        strerror(-fd));
	full = open("/dev/full", O_RDWR | O_CLOEXEC);
	return full < 0 ? fd : full;
}

/* Opens the configured files. While the token is not ready, nothing is read, because the files
 * alone do not make a CA. */
static void open_configured(struct supervisor *sv, struct ca_files *files,
        struct message_keeper_ca_ask *ask, char why[CA_FILES_WHY_MAX])
{
	const char *problem = token_problem(sv);

	why[0] = 0;
	if (ca_files_open(&sv->ca_life.config, files, why) == 0 && problem) {
		snprintf(why, CA_FILES_WHY_MAX, "ca.token: %s", problem);
		ca_files_close(files);
	}
	why[MESSAGE_WHAT_MAX - 1] = 0;
	ask->problem = slice_from_string(why);
}

/* Sends the question with a file for what changes, and the configuration's files. */
static int send_question(struct supervisor *sv, struct message_keeper_ca_ask *ask)
{
	struct ca_life *life = &sv->ca_life;
	struct ca_files files = {0};
	char why[CA_FILES_WHY_MAX];
	int fds[1 + CA_FILES_MAX] = {open_file(sv, (enum message_ca_what)ask->what)}, rc = 0;
	size_t count = 1, n;

	if (fds[0] < 0)
		return fds[0];
	if (ask->what == MESSAGE_CA_CHECK)
		open_configured(sv, &files, ask, why);
	ask->configured = files.configured;
	for (size_t i = 0; i < files.count; i++)
		fds[count++] = files.fds[i];
	life->id = supervisor_next_id(sv);
	life->what = (enum message_ca_what)ask->what;
	n = message_keeper_ca_ask_encode(
	        buffer, sizeof(buffer), MESSAGE_KEEPER_CA_ASK, life->id, ask);
	rc = role_send(&sv->keeper, buffer, n, fds, count);
	ca_files_close(&files);
	close(fds[0]);
	if (rc) {
		life->id = 0;
		root_file_forget_next(sv->ca);
	}
	return rc;
}

static int check(struct supervisor *sv)
{
	struct message_keeper_ca_ask ask = {.what = MESSAGE_CA_CHECK,
	        .overlap_s = sv->ca_life.config.overlap_s,
	        .problem = SLICE(""),
	        .name = SLICE(""),
	        .certificate = SLICE(""),
	        .root = SLICE("")};
	int rc;

	sv->ca_life.check_due = false;
	sv->ca_life.told = NULL;
	rc = send_question(sv, &ask);
	if (rc && rc != -EPIPE)
		log_error("the CAs cannot be looked after: %s", strerror(-rc));
	return rc == -EPIPE ? 0 : rc;
}

void ca_check_soon(struct supervisor *sv)
{
	if (sv->ca_life.paused || !role_runs(&sv->keeper))
		return; /* the next keeper is asked at its start */
	if (sv->ca_life.id)
		sv->ca_life.check_due = true;
	else if (sv->keeper_life.ready)
		check(sv);
}

static void on_clock(struct clock_watch *watch, bool jumped)
{
	struct supervisor *sv = container_of(watch, struct supervisor, ca_life.clock);

	if (jumped)
		log_info("the clock was set, or the machine has slept: certificates are examined");
	ca_check_soon(sv);
}

int ca_open(struct supervisor *sv)
{
	return clock_watch_open(sv->loop, &sv->ca_life.clock, CA_CHECK_S, on_clock);
}

void ca_close(struct supervisor *sv)
{
	token_end(sv);
	key_tokens_end(sv);
	clock_watch_close(&sv->ca_life.clock);
}

void ca_configure(struct supervisor *sv, const struct config_ca *config)
{
	sv->ca_life.config = *config;
	token_configure(sv, &config->token);
	ca_check_soon(sv);
}

void ca_pause(struct supervisor *sv, bool paused)
{
	sv->ca_life.paused = paused;
	if (!paused)
		ca_check_soon(sv);
}

int ca_ask(
        struct supervisor *sv, const struct message_keeper_ca_ask *ask, ca_told told, void *context)
{
	struct message_keeper_ca_ask copy = *ask;
	int rc;

	if (sv->ca_life.id)
		return -EBUSY;
	if (sv->ca_life.paused || !role_runs(&sv->keeper) || !sv->keeper_life.ready)
		return -EAGAIN;
	rc = send_question(sv, &copy);
	if (rc)
		return rc == -EPIPE ? -EAGAIN : rc;
	sv->ca_life.told = told;
	sv->ca_life.context = context;
	return 0;
}

int ca_begin(struct supervisor *sv)
{
	/* Only for the first keeper: if the token has refused the PIN, the next one must not make
	 * another attempt. */
	if (sv->token.state == TOKEN_NONE)
		token_configure(sv, &sv->ca_life.config.token);
	token_meet_keeper(sv);
	key_tokens_begin(sv);
	return check(sv);
}

/* Answers. */

static void finish(struct supervisor *sv, const char *error, bool changed)
{
	struct ca_life *life = &sv->ca_life;
	ca_told told = life->told;

	life->id = 0;
	life->told = NULL;
	if (told)
		told(life->context, error, changed);
	if (life->check_due && !life->id)
		ca_check_soon(sv);
}

static void tell_sandbox(struct sandbox *s, const void *context)
{
	const struct slice *pem = context;

	sandbox_trust(s, *pem);
}

static void publish(struct supervisor *sv)
{
	const struct slice *pem = &sv->ca_life.view.trusted;
	char text[MESSAGE_PEM_MAX + 1];
	int rc;

	if (pem->n == 0)
		return;
	supervisor_for_each(sv, tell_sandbox, pem);
	memcpy(text, pem->p, pem->n);
	text[pem->n] = 0;
	rc = root_file_publish(sv->ca, text);
	if (rc)
		log_warn("root.pem cannot be written: %s", strerror(-rc));
}

static void keep_view(struct ca_life *life, const struct reader *body)
{
	struct reader copy;

	memcpy(life->message, body->p, body->left);
	copy = reader_over(life->message, body->left);
	life->known = message_keeper_ca_decode(&copy, &life->view) == 0;
}

static void log_notes(struct supervisor *sv)
{
	struct ca_life *life = &sv->ca_life;
	char notes[sizeof(life->notes)];

	snprintf(notes, sizeof(notes), "%.*s", (int)life->view.notes.n, life->view.notes.p);
	if (token_is_pending(sv)) /* the result is known in a moment */
		return;
	if (notes[0] && strcmp(notes, life->notes) != 0)
		log_warn("certificates of sandboxes: %.*s", (int)strcspn(notes, "\n"), notes);
	memcpy(life->notes, notes, sizeof(notes));
}

/* Tells the audit log of a change that nobody asked for. */
static void record_change(struct supervisor *sv)
{
	const struct outbox_call call = {.operation = "ca.check",
	        .process_id = (uint32_t)getpid(),
	        .sandbox = "",
	        .done = "the CAs were renewed, dropped or configured anew"};

	outbox_api(sv, NULL, &call);
}

/* The new file takes the old one's place, and the keeper is told. */
static int keep_change(struct supervisor *sv, uint64_t id)
{
	int rc = root_file_replace(sv->ca);

	if (rc)
		return rc;
	log_info("the CAs of sandboxes have changed");
	if (sv->ca_life.what == MESSAGE_CA_CHECK)
		record_change(sv);
	rc = role_send(&sv->keeper, buffer,
	        message_empty(buffer, sizeof(buffer), MESSAGE_KEEPER_CA_KEPT, id), NULL, 0);
	return rc == -EPIPE ? 0 : rc; /* the next keeper reads the file */
}

int ca_answered(struct supervisor *sv, struct ipc_message *message)
{
	struct ca_life *life = &sv->ca_life;
	static struct message_keeper_ca m;
	const struct reader body = message->body;
	char error[MESSAGE_WHAT_MAX + 64] = "";
	int rc = 0;

	if (!life->id || message->head.id != life->id || message->body.left > CA_ANSWER_MAX ||
	        message_keeper_ca_decode(&message->body, &m) < 0)
		return -EBADMSG;
	if (m.changed)
		rc = keep_change(sv, life->id);
	else
		root_file_forget_next(sv->ca);
	if (rc)
		snprintf(error, sizeof(error), "the file of the CAs cannot be replaced: %s",
		        strerror(-rc));
	else if (m.error.n)
		snprintf(error, sizeof(error), "%.*s", (int)m.error.n, m.error.p);
	if (rc || (error[0] && life->what == MESSAGE_CA_CHECK)) /* there is no caller to tell */
		log_error("certificates of sandboxes: %s", error);
	if (!rc) {
		keep_view(life, &body);
		life->trying = m.trying;
		publish(sv);
		log_notes(sv);
	}
	finish(sv, error[0] ? error : NULL, !rc && m.changed);
	return 0;
}

void ca_lost(struct supervisor *sv)
{
	if (sv->ca_life.id)
		finish(sv, "the keeper died; 'vethguard ca show' says whether it was done before",
		        false);
	sv->ca_life.check_due = false;
}
