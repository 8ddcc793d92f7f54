/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_fixture: the control API over a real socket, above attachments that record what they are
 * asked and answer what they are told to. The integration tests have real
 * ones. Included after cmocka.h, in one file of a program.
 */
#ifndef VETHGUARD_TESTS_UNIT_SUPERVISOR_CONTROL_CONTROL_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_SUPERVISOR_CONTROL_CONTROL_FIXTURE_H

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/wire/control_http.h"
#include "supervisor/ask/asks.h"
#include "supervisor/bundles/bundles.h"
#include "supervisor/control/control.h"
#include "supervisor/session/session.h"

#define TURN_MS 10
#define PATIENCE_MS 20000

#define LABEL_BYTES 100000

struct attachment {
	int unused;
};
struct attachments {
	char asked[4096];
	struct attach_result answer;
	bool later; /* answers wait */
	bool no_env;
	bool prepared;                /* what there is is prepared */
	bool is_session;              /* ... or a session */
	struct session_token session; /* of the last request to attach */
	unsigned many; /* sandboxes in a list, each with a label of LABEL_BYTES; 0: two without */
	struct attach_bundle bundles[CONFIG_BUNDLES_MAX];
	size_t bundle_count;
	gid_t groups[8];
	size_t group_count;
	attach_done done;
	void *context;
};

static struct attachments all;
static struct attachment one;

__attribute__((format(printf, 3, 4))) static inline void ask(
        attach_done done, void *context, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(all.asked, sizeof(all.asked), format, arguments);
	va_end(arguments);
	all.done = done;
	all.context = context;
	if (!all.later)
		done(context, &all.answer);
}

void attachments_attach(
        struct attachments *a, const struct attach_request *r, attach_done done, void *context)
{
	char four[IP_TEXT_MAX] = "-", six[IP_TEXT_MAX] = "-";

	(void)a;
	all.group_count = r->caller.asked ? r->caller.group_count : SIZE_MAX;
	for (size_t i = 0; i < r->caller.group_count && i < 8; i++)
		all.groups[i] = r->caller.groups[i];
	if (r->address4.family)
		ip_format(&r->address4, four);
	if (r->address6.family)
		ip_format(&r->address6, six);
	all.session = r->session;
	if (r->purpose != ATTACH_TO_GUARD) {
		ask(done, context, "%s %s %d %s %s like %s %d %d %u %zu %zu",
		        r->purpose == ATTACH_TO_CLAIM ? "claim" : "prepare",
		        r->name ? r->name : "-", r->kind, r->netns ? r->netns : "-",
		        r->policy ? r->policy : "-", r->like ? r->like : "-", r->same_addresses,
		        r->wait, r->ttl_s, r->labels.count, r->vars.count);
		return;
	}
	ask(done, context,
	        "attach %s %d %s %s %d/%llu %s %s %s %d %u %zu:%s=%s %zu:%s=%s %s/%s/%s %u/%u/%d",
	        r->name ? r->name : "-", r->kind, r->interface ? r->interface : "-",
	        r->netns ? r->netns : "-", r->pid, (unsigned long long)r->pid_start_time, four, six,
	        r->policy, r->observe, r->ttl_s, r->labels.count,
	        r->labels.count ? r->labels.items[0].key : "",
	        r->labels.count ? r->labels.items[0].value : "", r->vars.count,
	        r->vars.count ? r->vars.items[0].key : "",
	        r->vars.count ? r->vars.items[0].value : "", r->container.engine, r->container.id,
	        r->container.name, r->caller.uid, r->caller.gid, (int)r->caller_pid);
}

void attachments_detach(struct attachments *a, const char *name, attach_done done, void *context)
{
	(void)a;
	ask(done, context, "detach %s", name);
}

void attachments_give_back(struct attachments *a, const char *name, attach_done done, void *context)
{
	(void)a;
	ask(done, context, "release %s", name);
}

void attachments_reload(struct attachments *a, const char *name, const char *policy,
        const struct identity *caller, attach_done done, void *context)
{
	(void)a;
	ask(done, context, "reload %s %s %u", name, policy ? policy : "-", caller->uid);
}

void attachments_reload_all(struct attachments *a, attach_done done, void *context)
{
	(void)a;
	ask(done, context, "reload all");
}

void attachments_pause(struct attachments *a, const char *name, const char *reason,
        attach_done done, void *context)
{
	(void)a;
	ask(done, context, "pause %s %s", name, reason ? reason : "-");
}

void attachments_resume(struct attachments *a, const char *name, attach_done done, void *context)
{
	(void)a;
	ask(done, context, "resume %s", name);
}

void attachments_follow(struct attachments *a, const char *name, pid_t pid, uint64_t start_time,
        attach_done done, void *context)
{
	(void)a;
	ask(done, context, "follow %s %d/%llu", name, (int)pid, (unsigned long long)start_time);
}

void attachments_extend(
        struct attachments *a, const char *name, uint32_t ttl_s, attach_done done, void *context)
{
	(void)a;
	ask(done, context, "extend %s %u", name, ttl_s);
}

void attachments_certify(struct attachments *a, const char *name,
        const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], attach_done done, void *context)
{
	(void)a;
	ask(done, context, "certify %s %02x%02x", name, hash[0],
	        hash[MESSAGE_TOKEN_HASH_BYTES - 1]);
}

void attachments_revoke(struct attachments *a, const char *name, attach_done done, void *context)
{
	(void)a;
	ask(done, context, "revoke %s", name);
}

void attachments_revoke_token(struct attachments *a, const char *signer, const char *value,
        attach_done done, void *context)
{
	(void)a;
	ask(done, context, "revoke token %s %s", signer, value);
}

void attachments_env(struct attachments *a, const char *name, attach_done done, void *context)
{
	static const struct attach_result busy = {.status = ATTACH_BUSY, .text = "not just now"};

	(void)a;
	if (all.no_env)
		done(context, &busy);
	else
		ask(done, context, "env %s", name);
}

void attachments_stats(struct attachments *a, const char *name, attach_done done, void *context)
{
	(void)a;
	ask(done, context, "stats %s", name);
}

void attachments_asks(struct attachments *a,
        void (*each)(void *context, const struct attach_ask *ask), void *context)
{
	(void)a;
	(void)each;
	(void)context;
}

void attachments_propose(struct attachments *a, uint64_t id, attach_done done, void *context)
{
	(void)a;
	ask(done, context, "propose %llu", (unsigned long long)id);
}

void attachments_decide(struct attachments *a, const struct attach_decision *decision,
        attach_done done, void *context)
{
	(void)a;
	ask(done, context, "decide %llu", (unsigned long long)decision->id);
}

void attachments_credentials(struct attachments *a, const char *name,
        enum message_credential_what what, const char *credential, attach_done done, void *context)
{
	(void)a;
	ask(done, context, "credentials %s %d %s", name, (int)what, credential ? credential : "*");
}

struct attachment *attachments_find(const struct attachments *a, const char *name)
{
	(void)a;
	return strcmp(name, "one") == 0 ? &one : NULL;
}

size_t attachments_count(const struct attachments *a)
{
	(void)a;
	return 1;
}

void attachments_for_each(
        struct attachments *a, bool (*what)(void *context, struct attachment *), void *context)
{
	(void)a;
	for (unsigned i = 0; i < (all.many ? all.many : 2) && what(context, &one); i++)
		;
}

void attachment_verify(
        const struct attachment *a, void (*tell)(void *context, const char *fault), void *context)
{
	(void)a;
	tell(context, "credential \"key\": /none: No such file or directory");
}

void attachment_view(struct attachment *a, struct attachment_view *out)
{
	static const struct attach_container container = {"docker", "0123abcd", "web \"x\""};
	static const struct attach_pair label = {"team", "r\xc3\xa4t"};
	static char text[LABEL_BYTES + 1];
	static const struct attach_pair large = {"team", text};

	(void)a;
	memset(text, 'x', LABEL_BYTES);
	*out = (struct attachment_view){.name = "one",
	        .id = 0x1f,
	        .state = all.prepared ? ATTACH_PREPARED : ATTACH_PAUSED,
	        .paused = true,
	        .reason = "look",
	        .kind = all.is_session ? ATTACH_SESSION : ATTACH_PID,
	        .session = all.is_session ? &all.session : NULL,
	        .interface = "",
	        .netns = "",
	        .pid = 77,
	        .container = &container,
	        .policy_path = "/p.yaml",
	        .policy_name = SLICE("p"),
	        .policy_fingerprint = SLICE("0011223344556677"),
	        .generation = 3,
	        .labels = {1, all.many ? &large : &label},
	        .proxy_port = 3128,
	        .uid = 5,
	        .gid = 6,
	        .created_ms = 1763762345678};
	ip_parse(SLICE("10.1.2.1"), &out->gate4);
}

const char *attach_state_name(enum attach_state state)
{
	return state == ATTACH_PAUSED ? "paused" : state == ATTACH_PREPARED ? "prepared" : "?";
}

const char *attach_kind_name(enum attach_kind kind)
{
	return kind == ATTACH_PID ? "pid" : kind == ATTACH_SESSION ? "session" : "?";
}

size_t attachments_bundles(
        const struct attachments *a, struct attach_bundle out[CONFIG_BUNDLES_MAX])
{
	(void)a;
	memcpy(out, all.bundles, sizeof(all.bundles));
	return all.bundle_count;
}

void attachments_status(struct attachments *a, struct attachments_status *out)
{
	(void)a;
	*out = (struct attachments_status){
	        .pid = 4, .audit_path = "/a", .config_path = "", .count = 1, .generation = 1};
}

/* The fixture. */

static struct {
	struct loop *loop;
	struct loop_timer timer;
	struct unix_listener listener;
	struct control *control;
	struct control_owner owner;
	char directory[64], path[96];
	unsigned told, status;
	bool looks;
	char operation[64], sandbox[80], detail[256], target[256];
} f;

static inline void called(struct control_owner *owner, const struct control_record *record)
{
	(void)owner;
	f.told++;
	f.status = record->status;
	f.looks = record->looks;
	assert_int_equal(record->peer.uid, getuid());
	snprintf(f.target, sizeof(f.target), "%s %s", record->method, record->target);
	snprintf(f.operation, sizeof(f.operation), "%s", record->operation);
	snprintf(f.sandbox, sizeof(f.sandbox), "%s", record->sandbox);
	snprintf(f.detail, sizeof(f.detail), "%s", record->detail);
}

static inline void on_time(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static inline int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	memset(&all, 0, sizeof(all));
	all.answer = (struct attach_result){.text = "", .attachment = &one};
	snprintf(f.directory, sizeof(f.directory), "/tmp/vethguard-control-XXXXXX");
	if (!mkdtemp(f.directory))
		return -1;
	snprintf(f.path, sizeof(f.path), "%s/control.sock", f.directory);
	f.loop = loop_new();
	f.owner.called = called;
	if (loop_timer_open(f.loop, &f.timer, on_time) != 0 ||
	        unix_listener_open(&f.listener, f.path, (gid_t)-1) != 0)
		return -1;
	f.control = control_new(f.loop, f.listener.fd, &all, &f.owner, (gid_t)-1);
	return f.control ? 0 : -1;
}

static inline int tear_down(void **state)
{
	(void)state;
	control_free(f.control);
	unix_listener_close(&f.listener);
	loop_timer_close(&f.timer);
	loop_free(f.loop);
	return rmdir(f.directory);
}

static inline void turn(void)
{
	loop_timer_set(&f.timer, TURN_MS);
	loop_run(f.loop);
}

static inline int dial(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(name.sun_path, f.path);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static char answer[CONTROL_BODY_MAX * 2];

static inline void say(
        int fd, const char *method, const char *path, const char *type, const char *body)
{
	char text[CONTROL_BODY_MAX + 1024];
	int n = snprintf(text, sizeof(text),
	        "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
	        "%s\r\nContent-Length: "
	        "%zu\r\n\r\n%s",
	        method, path, type, strlen(body), body);

	assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

/* Status and, in answer, the whole message. */
static inline unsigned hear(int fd)
{
	size_t n = 0;
	ssize_t more = -1;

	for (int waited = 0; waited < PATIENCE_MS && more != 0; waited += TURN_MS) {
		turn();
		while ((more = recv(fd, answer + n, sizeof(answer) - n - 1, 0)) > 0)
			n += (size_t)more;
	}
	answer[n] = '\0';
	close(fd);
	return n > 12 ? (unsigned)atoi(answer + 9) : 0;
}

static inline unsigned call(const char *method, const char *path, const char *body)
{
	int fd = dial();

	say(fd, method, path, *body ? "application/json; charset=utf-8" : "", body);
	return hear(fd);
}

/* Every answer is JSON, of the type that its header names. */
static inline json_t *json_answer(void)
{
	json_t *json = json_loads(strstr(answer, "\r\n\r\n") + 4, JSON_REJECT_DUPLICATES, NULL);

	if (!json)
		fail_msg("no JSON: %s", answer);
	if (atoi(answer + 9) >= 400) {
		assert_non_null(strstr(answer, "Content-Type: application/problem+json\r\n"));
		assert_int_equal(
		        json_integer_value(json_object_get(json, "status")), atoi(answer + 9));
	}
	return json;
}

static inline void refused(
        unsigned status, const char *method, const char *path, const char *body, const char *words)
{
	unsigned got = call(method, path, body);

	if (got != status || !strstr(answer, words))
		fail_msg("%s %s %.80s: not %u with \"%s\": %s", method, path, body, status, words,
		        answer);
	json_decref(json_answer());
	assert_string_equal(all.asked, "");
}

/* It is answered with 200, and the attachments were asked for this. */
static inline void asks(const char *method, const char *path, const char *body, const char *asked)
{
	assert_int_equal(call(method, path, body), 200);
	json_decref(json_answer());
	assert_string_equal(all.asked, asked);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
