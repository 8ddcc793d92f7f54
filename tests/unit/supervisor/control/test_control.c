/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control API over a real socket, above attachments that write down what they are asked and
 * answer what they are told to: routes, JSON both ways, and every way to be refused. What the real
 * ones do is the integration tests' subject.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

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
#include "supervisor/control/control.h"

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
	bool prepared; /* what there is is prepared */
	unsigned many; /* sandboxes in a list, each with a label of LABEL_BYTES; 0: two without */
	gid_t groups[8];
	size_t group_count;
	attach_done done;
	void *context;
};

static struct attachments all;
static struct attachment one;
static struct attach_env env;
static struct attach_stats stats;
static struct message_worker_stats worker_stats;
static struct message_summary summary;

static void ask(attach_done done, void *context, const char *format, ...)
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
	        .kind = ATTACH_PID,
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
	return kind == ATTACH_PID ? "pid" : "?";
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

static void called(struct control_owner *owner, const struct control_record *record)
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

static void on_time(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static int set_up(void **state)
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

static int tear_down(void **state)
{
	(void)state;
	control_free(f.control);
	unix_listener_close(&f.listener);
	loop_timer_close(&f.timer);
	loop_free(f.loop);
	return rmdir(f.directory);
}

static void turn(void)
{
	loop_timer_set(&f.timer, TURN_MS);
	loop_run(f.loop);
}

static int dial(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(name.sun_path, f.path);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static char answer[CONTROL_BODY_MAX * 2];

static void say(int fd, const char *method, const char *path, const char *type, const char *body)
{
	char text[CONTROL_BODY_MAX + 1024];
	int n = snprintf(text, sizeof(text),
	        "%s %s HTTP/1.1\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: "
	        "%zu\r\n\r\n%s",
	        method, path, type, strlen(body), body);

	assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

/* Status and, in answer, the whole message. */
static unsigned hear(int fd)
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

static unsigned call(const char *method, const char *path, const char *body)
{
	int fd = dial();

	say(fd, method, path, *body ? "application/json; charset=utf-8" : "", body);
	return hear(fd);
}

/* Whatever is answered is JSON, and of the type that it says. */
static json_t *json_answer(void)
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

static void refused(
        unsigned status, const char *method, const char *path, const char *body, const char *words)
{
	unsigned got = call(method, path, body);

	if (got != status || !strstr(answer, words))
		fail_msg("%s %s %.80s: not %u with \"%s\": %s", method, path, body, status, words,
		        answer);
	json_decref(json_answer());
	assert_string_equal(all.asked, "");
}

/* Tests. */

static void test_attach(void **state)
{
	char expected[4096];

	(void)state;
	assert_int_equal(call("POST", "/v1/sandboxes",
	                         "{\"name\":\"n\",\"pid\":9,\"start_time\":8,\"addresses\":[\"10."
	                         "0.0.2\",\"fd00::2\"],\"policy\":\"/p\",\"observe\":true,"
	                         "\"labels\":{\"a\":\"b\"},\"vars\":{\"c\":\"d\"},\"ttl_s\":60,"
	                         "\"container\":{\"engine\":\"docker\",\"id\":\"i\",\"name\":null"
	                         "},\"interface\":null}"),
	        201);
	snprintf(expected, sizeof(expected),
	        "attach n 2 - - 9/8 10.0.0.2 fd00::2 /p 1 60 1:a=b 1:c=d docker/i/ %u/%u/%d",
	        getuid(), getgid(), getpid());
	assert_string_equal(all.asked, expected);
	assert_int_equal(f.told, 1);
	assert_string_equal(f.operation, "sandboxes.attach");
	assert_string_equal(f.sandbox, "one");
	assert_int_equal(f.status, 201);
	/* A namespace, and the process with which its sandbox ends. */
	assert_int_equal(call("POST", "/v1/sandboxes",
	                         "{\"netns\":\"/n\",\"pid\":9,\"start_time\":8,\"policy\":\"/p\"}"),
	        201);
	snprintf(expected, sizeof(expected), "attach - 1 - /n 9/8 - - /p 0 0 0:= 0:= // %u/%u/%d",
	        getuid(), getgid(), getpid());
	assert_string_equal(all.asked, expected);
}

static void test_sandbox_object(void **state)
{
	json_t *s, *part;

	(void)state;
	assert_int_equal(call("GET", "/v1/sandboxes/one", ""), 200);
	s = json_answer();
	assert_string_equal(json_string_value(json_object_get(s, "id")), "000000000000001f");
	assert_string_equal(json_string_value(json_object_get(s, "state")), "paused");
	assert_true(json_is_true(json_object_get(s, "paused")));
	assert_string_equal(
	        json_string_value(json_object_get(s, "created")), "2025-11-21T21:59:05.678Z");
	assert_true(json_is_null(json_object_get(s, "expires")));
	part = json_object_get(json_object_get(s, "attachment"), "container");
	assert_string_equal(json_string_value(json_object_get(part, "name")), "web \"x\"");
	part = json_object_get(s, "labels");
	assert_string_equal(json_string_value(json_object_get(part, "team")), "r\xc3\xa4t");
	part = json_object_get(s, "addresses");
	assert_string_equal(json_string_value(json_object_get(part, "gate4")), "10.1.2.1");
	assert_true(json_is_null(json_object_get(part, "sandbox6")));
	json_decref(s);
	assert_string_equal(f.operation, "sandboxes.get");
	assert_string_equal(f.sandbox, "one");
	assert_true(f.looks);
	assert_int_equal(call("GET", "/v1/sandboxes/two", ""), 404);
	json_decref(json_answer());
	assert_int_equal(f.told, 2); /* a refusal, too */
	assert_int_equal(f.status, 404);
	assert_int_equal(call("GET", "/v1/sandboxes", ""), 200);
	s = json_answer();
	assert_int_equal(json_array_size(json_object_get(s, "sandboxes")), 2);
	json_decref(s);
}

/* Labels may be more than an answer holds: that hides no sandbox. */
static void test_a_long_list(void **state)
{
	json_t *list, *s;

	(void)state;
	assert_int_equal(call("GET", "/v1/sandboxes", ""), 200);
	list = json_answer();
	assert_true(json_is_false(json_object_get(list, "brief")));
	json_decref(list);
	all.many = CONTROL_ANSWER_MAX / LABEL_BYTES + 10;
	assert_int_equal(call("GET", "/v1/sandboxes", ""), 200);
	list = json_answer();
	assert_true(json_is_true(json_object_get(list, "brief")));
	assert_int_equal(json_array_size(json_object_get(list, "sandboxes")), all.many);
	s = json_array_get(json_object_get(list, "sandboxes"), 0);
	assert_string_equal(json_string_value(json_object_get(s, "name")), "one");
	assert_true(json_is_null(json_object_get(s, "labels")));
	assert_true(json_is_null(json_object_get(json_object_get(s, "policy"), "path")));
	json_decref(list);
}

/* The process' own, not those that a database knows. */
static void test_groups(void **state)
{
	gid_t own[64];
	int count = getgroups(64, own);

	(void)state;
	assert_int_equal(call("POST", "/v1/sandboxes", "{\"pid\":9,\"policy\":\"/p\"}"), 201);
	assert_int_equal(all.group_count, count);
	for (int i = 0; i < count && i < 8; i++)
		assert_int_equal(all.groups[i], own[i]);
}

/* It is guarded, and that is the answer, although nothing was written inside. */
static void test_attached_without_files(void **state)
{
	json_t *s;

	(void)state;
	all.no_env = true;
	assert_int_equal(
	        call("POST", "/v1/sandboxes", "{\"pid\":9,\"policy\":\"/p\",\"files\":true}"), 201);
	s = json_answer();
	assert_int_equal(json_array_size(json_object_get(s, "files")), 0);
	assert_string_equal(json_string_value(json_array_get(json_object_get(s, "warnings"), 0)),
	        "credential \"key\": /none: No such file or directory");
	assert_string_equal(json_string_value(json_array_get(json_object_get(s, "warnings"), 1)),
	        "nothing was written into the sandbox: not just now");
	json_decref(s);
	assert_int_equal(f.status, 201);
}

static void asks(const char *method, const char *path, const char *body, const char *asked)
{
	assert_int_equal(call(method, path, body), 200);
	json_decref(json_answer());
	assert_string_equal(all.asked, asked);
}

static void test_operations(void **state)
{
	char reload[64];

	(void)state;
	all.answer.diff = "+ one\n- two\n";
	all.answer.env = &env;
	all.answer.stats = &stats;
	all.answer.summary = &summary;
	asks("DELETE", "/v1/sandboxes/one", "", "detach one");
	assert_string_equal(f.operation, "sandboxes.detach");
	assert_string_equal(f.target, "DELETE /v1/sandboxes/one");
	asks("GET", "/v1/sandboxes/one/env", "", "env one");
	asks("GET", "/v1/sandboxes/one/stats", "", "stats one");
	stats.worker = &worker_stats;
	asks("GET", "/v1/sandboxes/one/stats", "", "stats one");
	snprintf(reload, sizeof(reload), "reload one - %u", getuid());
	asks("POST", "/v1/sandboxes/one/reload", "", reload);
	assert_non_null(strstr(answer, "\"diff\":[\"+ one\",\"- two\"]"));
	snprintf(reload, sizeof(reload), "reload one /q %u", getuid());
	asks("POST", "/v1/sandboxes/one/reload", "{\"policy\":\"/q\"}", reload);
	asks("POST", "/v1/sandboxes/one/follow", "{\"pid\":7}", "follow one 7/0");
	asks("POST", "/v1/sandboxes/one/follow", "{\"pid\":7,\"start_time\":9}", "follow one 7/9");
	asks("POST", "/v1/sandboxes/one/pause", "{}", "pause one -");
	asks("POST", "/v1/sandboxes/one/pause", "{\"reason\":\"why\"}", "pause one why");
	asks("POST", "/v1/sandboxes/one/resume", "", "resume one");
	asks("POST", "/v1/reload", "", "reload all");
	assert_string_equal(f.operation, "reload");
	assert_string_equal(f.target, "POST /v1/reload");
	assert_false(f.looks);
	assert_int_equal(f.told, 12);
	all.asked[0] = '\0';
	asks("GET", "/v1/status", "", "");
}

static void test_prepared(void **state)
{
	const struct attach_traces clean = {false, false, false, false};
	struct attach_traces left = clean;
	json_t *list;

	(void)state;
	assert_int_equal(call("POST", "/v1/prepared",
	                         "{\"name\":\"r-1\",\"netns\":\"/n\",\"addresses\":\"same\"}"),
	        201);
	assert_string_equal(all.asked, "prepare r-1 1 /n - like - 1 0 0 0 0");
	assert_string_equal(f.operation, "prepared.add");
	assert_non_null(strstr(answer, "\"addresses\":\"own\",\"gate4\":\"10.1.2.1\""));
	assert_int_equal(
	        call("POST", "/v1/prepared", "{\"netns\":\"/n\",\"addresses\":\"own\"}"), 201);
	assert_string_equal(all.asked, "prepare - 1 /n - like - 0 0 0 0 0");
	assert_int_equal(
	        call("POST", "/v1/claim",
	                "{\"name\":\"a\",\"policy\":\"/p\",\"netns\":\"/n\",\"like\":\"b\","
	                "\"wait\":true,\"ttl_s\":9,\"labels\":{\"k\":\"v\"},"
	                "\"vars\":{\"x\":\"y\"}}"),
	        201);
	assert_string_equal(all.asked, "claim a 1 /n /p like b 0 1 9 1 1");
	assert_string_equal(f.operation, "sandboxes.claim");
	assert_int_equal(call("POST", "/v1/claim", "{\"policy\":\"/p\"}"), 201);
	assert_string_equal(all.asked, "claim - 1 - /p like - 0 0 0 0 0");
	all.answer.summary = &summary;
	all.answer.traces = &clean;
	asks("POST", "/v1/sandboxes/one/release", "{}", "release one");
	assert_non_null(strstr(answer, "\"summary\":{"));
	left.names = true;
	all.answer.traces = &left;
	assert_int_equal(call("POST", "/v1/sandboxes/one/release", ""), 500);
	assert_non_null(strstr(answer, "this is left of it: its synthetic names; do not"));
	/* What is prepared is in a list of its own. */
	assert_int_equal(call("GET", "/v1/prepared", ""), 200);
	list = json_answer();
	assert_int_equal(json_array_size(json_object_get(list, "prepared")), 0);
	json_decref(list);
	all.prepared = true;
	assert_int_equal(call("GET", "/v1/prepared", ""), 200);
	list = json_answer();
	assert_int_equal(json_array_size(json_object_get(list, "prepared")), 2);
	json_decref(list);
	assert_int_equal(call("GET", "/v1/sandboxes", ""), 200);
	list = json_answer();
	assert_int_equal(json_array_size(json_object_get(list, "sandboxes")), 0);
	json_decref(list);
}

static void test_wrong_members_of_claims(void **state)
{
	(void)state;
	refused(422, "POST", "/v1/prepared", "", "no body");
	refused(422, "POST", "/v1/prepared", "{}", "netns: ");
	refused(422, "POST", "/v1/prepared", "{\"netns\":\"n\"}", "absolute");
	refused(422, "POST", "/v1/prepared", "{\"netns\":\"/n\",\"addresses\":\"x\"}",
	        "addresses: ");
	refused(422, "POST", "/v1/prepared", "{\"netns\":\"/n\",\"policy\":\"/p\"}",
	        "no such member");
	refused(422, "POST", "/v1/claim", "", "no body");
	refused(422, "POST", "/v1/claim", "{}", "policy: ");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"p\"}", "absolute");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"/p\",\"netns\":\"n\"}", "absolute");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"/p\",\"name\":\"\"}", "name: is empty");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"/p\",\"wait\":1}", "true or false");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"/p\",\"ttl_s\":31622401}", "out of range");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"/p\",\"pid\":1}", "no such member");
	refused(422, "POST", "/v1/sandboxes/one/release", "{\"x\":1}", "no members");
	refused(405, "GET", "/v1/claim", "", "POST");
}

static void test_no_route(void **state)
{
	(void)state;
	refused(404, "GET", "/", "", "there is no /");
	refused(404, "GET", "/v1/sandboxes/", "", "there is no");
	refused(404, "GET", "/v1/sandboxes/a/b", "", "there is no");
	refused(404, "GET", "/v1/sandboxes/..", "", "there is no");
	refused(404, "GET", "/v1/sandboxes/%6fne", "", "there is no");
	refused(404, "GET", "/v1/sandboxes/one/envs", "", "there is no");
	refused(404, "GET", "/v1/sandboxes//env", "", "there is no");
	refused(404, "GET", "/v1/sandboxes?all", "", "it takes no query");
	refused(405, "PUT", "/v1/sandboxes", "", "Allow: GET, POST\r\n");
	refused(405, "POST", "/v1/status", "", "Allow: GET\r\n");
	refused(405, "get", "/v1/status", "", "Allow: GET\r\n");
	refused(405, "GET", "/v1/sandboxes/one/pause", "", "Allow: POST\r\n");
	assert_int_equal(f.told, 12); /* told as well, with what was asked for */
	assert_int_equal(f.status, 405);
	assert_string_equal(f.operation, "");
	assert_string_equal(f.target, "GET /v1/sandboxes/one/pause");
}

static void test_no_json(void **state)
{
	int fd = dial();
	char deep[8192] = "{\"labels\":";

	(void)state;
	say(fd, "POST", "/v1/sandboxes", "application/x-www-form-urlencoded", "{}");
	assert_int_equal(hear(fd), 415);
	json_decref(json_answer());
	refused(400, "POST", "/v1/sandboxes", "{", "line 1, column 1");
	refused(400, "POST", "/v1/sandboxes", "[]", "has to be a JSON object");
	refused(400, "POST", "/v1/sandboxes", "{} {}", "no JSON");
	refused(400, "POST", "/v1/sandboxes", "{\"a\":1,\"a\":2}", "no JSON");
	refused(400, "POST", "/v1/sandboxes", "{\"name\":\"\\u0000\"}", "no JSON");
	refused(400, "POST", "/v1/sandboxes", "{\"name\":\"\xff\"}", "no JSON");
	memset(deep + 10, '[', sizeof(deep) - 11);
	refused(400, "POST", "/v1/sandboxes", deep, "no JSON");
	refused(400, "DELETE", "/v1/sandboxes/one", "{}", "has no body");
}

#define WITH(members) "{\"policy\":\"/p\",\"pid\":1," members "}"

static void test_wrong_members(void **state)
{
	(void)state;
	refused(422, "POST", "/v1/sandboxes", "", "no body");
	refused(422, "POST", "/v1/sandboxes", WITH("\"obsrve\":true"),
	        "did you mean \\\"observe\\\"?");
	refused(422, "POST", "/v1/sandboxes", WITH("\"zzz\":1"), "zzz: there is no such member");
	refused(422, "POST", "/v1/sandboxes", WITH("\"a\\u001b[2J\":1"), "\\\\x1b");
	refused(422, "POST", "/v1/sandboxes", WITH("\"name\":1"), "name: has to be a string");
	refused(422, "POST", "/v1/sandboxes", WITH("\"observe\":\"yes\""), "true or false");
	refused(422, "POST", "/v1/sandboxes", WITH("\"ttl_s\":1.5"), "a whole number");
	refused(422, "POST", "/v1/sandboxes", WITH("\"ttl_s\":0"), "out of range");
	refused(422, "POST", "/v1/sandboxes", WITH("\"ttl_s\":31622401"), "out of range");
	refused(422, "POST", "/v1/sandboxes", WITH("\"labels\":[]"), "an object");
	refused(422, "POST", "/v1/sandboxes", WITH("\"labels\":{\"a\":1}"), "labels.a: ");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"x\"]"), "'x' is no IP");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[1]"), "is no IP");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"1.1.1.1/33\"]"),
	        "no such length");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"1.1.1.1/0\"]"),
	        "no such length");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"1.1.1.1/\"]"),
	        "no such length");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"fd00::1/129\"]"),
	        "no such length");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"/16\"]"), "is no IP");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"1.1.1.1\",\"1.1.1.2\"]"),
	        "at most one");
	refused(422, "POST", "/v1/sandboxes", WITH("\"container\":{\"nme\":\"x\"}"),
	        "container.nme");
	refused(422, "POST", "/v1/sandboxes", WITH("\"interface\":\"e\",\"netns\":\"/n\""),
	        "too many: one of");
	refused(422, "POST", "/v1/sandboxes", WITH("\"interface\":\"e\""), "too many: one of");
	refused(422, "POST", "/v1/sandboxes", "{\"policy\":\"/p\"}", "none given: one of");
	refused(422, "POST", "/v1/sandboxes", "{\"policy\":\"/p\",\"netns\":\"n\"}", "absolute");
	refused(422, "POST", "/v1/sandboxes", "{\"policy\":\"p\",\"pid\":1}", "policy: ");
	refused(422, "POST", "/v1/sandboxes", "{\"pid\":1}", "policy: ");
	refused(422, "POST", "/v1/sandboxes", "{\"policy\":\"/p\",\"pid\":0}", "out of range");
	refused(422, "POST", "/v1/sandboxes",
	        "{\"policy\":\"/p\",\"interface\":\"e\",\"files\":true}", "files: ");
	refused(422, "POST", "/v1/sandboxes",
	        "{\"policy\":\"/p\",\"interface\":\"e\",\"start_time\":1}", "go with a pid");
	refused(422, "POST", "/v1/sandboxes/one/reload", "{\"policy\":\"p\"}", "absolute");
	refused(422, "POST", "/v1/sandboxes/one/pause", "{\"resaon\":\"x\"}", "did you mean");
	refused(422, "POST", "/v1/sandboxes/one/follow", "{}", "is to end is needed");
	refused(422, "POST", "/v1/sandboxes/one/follow", "", "is to end is needed");
	refused(422, "POST", "/v1/sandboxes/one/follow", "{\"pid\":0}", "out of range");
	refused(422, "POST", "/v1/sandboxes/one/follow", "{\"pid\":\"7\"}", "a whole number");
	refused(422, "POST", "/v1/sandboxes/one/follow", "{\"pdi\":7}", "did you mean");
	refused(422, "POST", "/v1/sandboxes/one/resume", "{\"x\":1}", "takes no members");
	refused(422, "POST", "/v1/reload", "{\"x\":1}", "takes no members");
	assert_string_equal(f.operation, "reload"); /* refusals of changes are told too */
	assert_int_equal(f.status, 422);
	assert_string_equal(f.detail, "this request takes no members");
}

static void test_many_pairs(void **state)
{
	char body[8192], *at = body;

	(void)state;
	at += sprintf(at, "{\"policy\":\"/p\",\"pid\":1,\"labels\":{");
	for (int i = 0; i < ATTACH_LABELS_MAX; i++)
		at += sprintf(at, "%s\"k%d\":\"v\"", i ? "," : "", i);
	strcpy(at, "}}");
	assert_int_equal(call("POST", "/v1/sandboxes", body), 201);
	all.asked[0] = '\0';
	strcpy(at, ",\"one\":\"more\"}}");
	refused(422, "POST", "/v1/sandboxes", body, "labels: more than 32");
}

static void test_failures(void **state)
{
	static const struct {
		enum attach_status status;
		unsigned expected;
	} cases[] = {{ATTACH_INVALID, 422}, {ATTACH_NOT_FOUND, 404}, {ATTACH_CONFLICT, 409},
	        {ATTACH_BUSY, 503}, {ATTACH_FAILED, 500}};
	json_t *json;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		all.answer = (struct attach_result){.status = cases[i].status,
		        .text = "because",
		        .diagnostics = "p:1:2: error: x\np:3:4: error: y\n"};
		assert_int_equal(call("POST", "/v1/sandboxes/one/resume", ""), cases[i].expected);
		json = json_answer();
		assert_string_equal(json_string_value(json_object_get(json, "detail")), "because");
		assert_int_equal(json_array_size(json_object_get(json, "diagnostics")), 2);
		json_decref(json);
		assert_string_equal(f.detail, "because");
	}
}

static int tell_roles(struct control_owner *owner, roles_told told, void *context)
{
	static char text[LABEL_BYTES + 1];
	static struct confinement_report reports[2 + CONTROL_ANSWER_MAX / LABEL_BYTES];

	(void)owner;
	memset(text, 'x', LABEL_BYTES);
	for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++)
		reports[i] =
		        (struct confinement_report){.label = "a worker", .pid = 9, .text = text};
	told(context, 0, reports, all.many ? sizeof(reports) / sizeof(reports[0]) : 1);
	return 0;
}

static int tell_head(struct control_owner *owner, head_told told, void *context)
{
	(void)owner;
	if (all.many)
		return all.many == 1 ? -EBUSY : -ENOMEM;
	told(context, all.later ? NULL : "00ff");
	return 0;
}

static void test_audit(void **state)
{
	(void)state;
	f.owner.head = tell_head;
	assert_int_equal(call("GET", "/v1/audit", ""), 200);
	assert_non_null(
	        strstr(answer, "{\"path\":\"/a\",\"recording\":false,\"fingerprint\":\"00ff\"}"));
	all.later = true;
	assert_int_equal(call("GET", "/v1/audit", ""), 200);
	assert_non_null(strstr(answer, "\"fingerprint\":null}"));
	all.many = 1;
	refused(503, "GET", "/v1/audit", "", "too many callers ask for that");
	all.many = 2;
	refused(503, "GET", "/v1/audit", "", "no memory");
	refused(405, "POST", "/v1/audit", "", "Allow: GET\r\n");
	refused(404, "GET", "/v1/audit/x", "", "");
}

/* What the keeper has, and what it is asked for. */

#define PRINT "0123456789abcdef0123456789abcdef"

static struct message_keeper_ca cas;
static struct {
	char text[256];
	int rc;
	const char *error;
} change;

static const struct message_keeper_ca *tell_cas(struct control_owner *owner)
{
	(void)owner;
	return cas.count ? &cas : NULL;
}

static int change_cas(struct control_owner *owner, const struct message_keeper_ca_ask *q,
        ca_told told, void *context)
{
	(void)owner;
	snprintf(change.text, sizeof(change.text), "%u %u %.*s %.*s %.*s", q->what, q->overlap_s,
	        (int)q->name.n, q->name.p, (int)q->certificate.n, q->certificate.p, (int)q->root.n,
	        q->root.p);
	if (!change.rc)
		told(context, change.error, true);
	return change.rc;
}

static void test_cas(void **state)
{
	(void)state;
	f.owner.ca = tell_cas;
	cas = (struct message_keeper_ca){0};
	refused(503, "GET", "/v1/ca", "", "not told of its CAs yet");
	cas = (struct message_keeper_ca){.notes = SLICE("one\ntwo\n"),
	        .request = SLICE(""),
	        .trusted = SLICE("-----BEGIN"),
	        .count = 1};
	cas.cas[0].fingerprint = cas.cas[0].root = SLICE(PRINT);
	cas.cas[0].subject = cas.cas[0].root_subject = SLICE("CN=\"a\"");
	cas.cas[0].until_s = 1763762345;
	assert_int_equal(call("GET", "/v1/ca", ""), 200);
	assert_non_null(strstr(answer, "\"notes\":[\"one\",\"two\"]"));
	assert_non_null(strstr(answer, "\"request_pem\":null"));
	assert_non_null(
	        strstr(answer, "\"origin\":\"own\",\"current\":true,\"subject\":\"CN=\\\"a\\\"\""));
	assert_non_null(strstr(answer, "\"until\":\"2025-11-21T21:59:05.000Z\""));
	assert_non_null(strstr(answer, "\"fingerprint\":\"3031"));
	assert_non_null(strstr(answer, "\"sandboxes\":0}"));
	assert_true(f.looks);
	json_decref(json_answer());
	cas.unusable = true;
	assert_int_equal(call("GET", "/v1/ca", ""), 200);
	assert_non_null(strstr(answer, "\"usable\":false"));
	assert_non_null(strstr(answer, "\"current\":false"));
}

static void asks_for(const char *path, const char *body, const char *expected)
{
	change.text[0] = 0;
	assert_int_equal(call("POST", path, body), 200);
	assert_string_equal(change.text, expected);
	assert_false(f.looks);
}

static void test_changes_of_cas(void **state)
{
	(void)state;
	f.owner.ca = tell_cas;
	f.owner.change_ca = change_cas;
	memset(&change, 0, sizeof(change));
	cas.count = 1;
	asks_for("/v1/ca/csr", "", "2 0   ");
	asks_for("/v1/ca/csr", "{\"name\":\"n\"}", "2 0 n  ");
	asks_for("/v1/ca/install", "{\"certificate\":\"c\",\"root\":\"r\",\"overlap_s\":9}",
	        "3 9  c r");
	asks_for("/v1/ca/rotate", "{\"overlap_s\":315360000,\"name\":\"n\"}", "4 315360000 n  ");
	change.text[0] = 0;
	refused(422, "POST", "/v1/ca/csr", "{\"nmae\":\"n\"}", "did you mean \\\"name\\\"");
	refused(422, "POST", "/v1/ca/csr", "{\"name\":7}", "has to be a string");
	refused(422, "POST", "/v1/ca/csr", "{\"root\":\"r\"}", "no such member");
	refused(422, "POST", "/v1/ca/install", "", "certificate: the PEM text");
	refused(422, "POST", "/v1/ca/install", "{\"root\":\"r\"}", "certificate: the PEM text");
	refused(422, "POST", "/v1/ca/rotate", "{\"overlap_s\":0}", "out of range");
	refused(422, "POST", "/v1/ca/rotate", "{\"overlap_s\":315360001}", "out of range");
	refused(405, "POST", "/v1/ca", "", "Allow: GET\r\n");
	refused(404, "POST", "/v1/ca/drop", "", "");
	assert_string_equal(change.text, "");
	change.error = "the certificate has pathlen 0";
	refused(422, "POST", "/v1/ca/rotate", "", "pathlen 0");
	change.rc = -EBUSY;
	refused(503, "POST", "/v1/ca/rotate", "", "under way");
	change.rc = -EAGAIN;
	refused(503, "POST", "/v1/ca/rotate", "", "taking over");
	change.rc = -ENOSPC;
	refused(500, "POST", "/v1/ca/rotate", "", "cannot be made");
}

static void test_roles(void **state)
{
	(void)state;
	f.owner.roles = tell_roles;
	assert_int_equal(call("GET", "/v1/roles", ""), 200);
	assert_non_null(
	        strstr(answer, "{\"roles\":[{\"role\":\"a worker\",\"pid\":9,\"text\":\"xx"));
	all.many = 1;
	refused(503, "GET", "/v1/roles", "", "too large for one answer");
}

/* The client has gone, or the server, before an operation has its answer. */
static void test_late_answers(void **state)
{
	int fd = dial();

	(void)state;
	all.later = true;
	say(fd, "POST", "/v1/sandboxes/one/resume", "", "");
	while (!all.done)
		turn();
	close(fd);
	turn();
	all.done(all.context, &all.answer);
	turn();
	assert_int_equal(f.told, 1); /* told all the same: it was done */
	all.done = NULL;
	fd = dial();
	say(fd, "POST", "/v1/sandboxes/one/resume", "", "");
	while (!all.done)
		turn();
	control_free(f.control);
	f.control = NULL;
	all.done(all.context, &all.answer);
	close(fd);
	assert_int_equal(f.told, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        CASE(test_attach),
	        CASE(test_sandbox_object),
	        CASE(test_a_long_list),
	        CASE(test_groups),
	        CASE(test_attached_without_files),
	        CASE(test_operations),
	        CASE(test_prepared),
	        CASE(test_wrong_members_of_claims),
	        CASE(test_no_route),
	        CASE(test_no_json),
	        CASE(test_wrong_members),
	        CASE(test_many_pairs),
	        CASE(test_failures),
	        CASE(test_audit),
	        CASE(test_cas),
	        CASE(test_changes_of_cas),
	        CASE(test_roles),
	        CASE(test_late_answers),
	};

	log_open("test_control", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
