/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaching: everything that can be wrong with a request is found before anything is made; what is
 * made then is one sandbox whose gate is pinned and whose state is on the disk before anybody is
 * told that it is served.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "vethguard/base/process.h"
#include "supervisor/attach/process.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/local_file.h"
#include "supervisor/open_files.h"

#define INTERFACE_NAME_MAX (IFNAMSIZ - 1)

/* A request on its way. What it holds is closed where it goes no further. */
struct attaching {
	struct attachments *all;
	const struct attach_request *request;
	struct attachment *attachment;
	int netns;
	struct gate_divert divert;
	enum attach_status status;
	char text[SANDBOX_FAILURE_MAX];
	char *diagnostics; /* owned */
	const struct settings_files *files;
	bool remote; /* a child has to read the policy first */
};

__attribute__((format(printf, 3, 4))) static bool refuse(
        struct attaching *t, enum attach_status status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(t->text, sizeof t->text, format, arguments);
	va_end(arguments);
	t->status = status;
	return false;
}

/* Each step is true where the next may follow. */

static bool is_absolute(const char *path)
{
	return path && path[0] == '/' && strlen(path) <= MESSAGE_PATH_MAX;
}

/* Nobody sends from such an address: the sandbox would be cut off without a word. */
static bool check_address(struct attaching *t, const struct ip *address)
{
	const enum ip_class class = ip_classify(address);
	char text[IP_TEXT_MAX];

	if (!address->family ||
	        (class != IP_UNSPECIFIED && class != IP_LOOPBACK && class != IP_MULTICAST &&
	                class != IP_BROADCAST && class != IP_MAPPED))
		return true;
	return refuse(t, ATTACH_INVALID, "no sandbox can have the address %s: it is %s",
	        ip_format(address, text), ip_class_name(class));
}

static bool check_interface(struct attaching *t)
{
	const char *name = t->request->interface;

	if (!name || !name[0] || strlen(name) > INTERFACE_NAME_MAX || strchr(name, '/') ||
	        strchr(name, ' '))
		return refuse(t, ATTACH_INVALID,
		        "an interface's name has 1 to %d characters, none a slash or space",
		        INTERFACE_NAME_MAX);
	return check_address(t, &t->request->address4) && check_address(t, &t->request->address6);
}

/* Whoever asked sees which one is meant, as far as SHOWN_BYTES go. */
#define SHOWN_BYTES 96

static const char *show(const char *text, char out[SHOWN_BYTES])
{
	return slice_escape(slice_from_string(text), out, SHOWN_BYTES);
}

static bool refuse_pair(struct attaching *t, const char *objection, const struct attach_pair *pair)
{
	char key[SHOWN_BYTES];

	return pair ? refuse(t, ATTACH_INVALID, "%s: %s", show(pair->key, key), objection)
	            : refuse(t, ATTACH_INVALID, "%s", objection);
}

static bool check_texts(struct attaching *t)
{
	const struct attach_request *r = t->request;
	const struct attach_pair *culprit;
	char name[SHOWN_BYTES];
	const char *objection = attach_labels_objection(&r->labels, &culprit);

	if (!objection)
		objection = attach_vars_objection(&r->vars, &culprit);
	if (objection)
		return refuse_pair(t, objection, culprit);
	objection = attach_container_objection(&r->container);
	if (objection)
		return refuse(t, ATTACH_INVALID, "%s", objection);
	return !r->name || !r->name[0] || message_name_is_plain(slice_from_string(r->name)) ||
	       refuse(t, ATTACH_INVALID, "%s: " MESSAGE_NAME_RULE, show(r->name, name),
	               MESSAGE_NAME_MAX);
}

static bool check_request(struct attaching *t)
{
	const struct attach_request *r = t->request;

	if (!check_texts(t))
		return false;
	if (!is_absolute(r->policy))
		return refuse(t, ATTACH_INVALID,
		        "the policy's path has to be absolute, of at most %d bytes",
		        MESSAGE_PATH_MAX);
	if (r->caller.group_count > IDENTITY_GROUPS_MAX)
		return refuse(t, ATTACH_INVALID, ATTACH_GROUPS_RULE, IDENTITY_GROUPS_MAX);
	if (r->ttl_s > ATTACH_TTL_MAX_S)
		return refuse(t, ATTACH_INVALID, "ttl_s is at most %u", ATTACH_TTL_MAX_S);
	if (r->kind == ATTACH_NETNS && !is_absolute(r->netns))
		return refuse(t, ATTACH_INVALID,
		        "the namespace's path has to be absolute, of at most %d bytes",
		        MESSAGE_PATH_MAX);
	if (r->kind == ATTACH_PID && r->pid <= 0)
		return refuse(t, ATTACH_INVALID, "a process has a number above 0");
	if (r->kind == ATTACH_INTERFACE)
		return check_interface(t);
	if (r->address4.family || r->address6.family)
		return refuse(t, ATTACH_INVALID,
		        "addresses go with an interface, whose sandbox has its own; the link "
		        "that is made here gets them from the pools of the configuration");
	return true;
}

_Static_assert(ATTACHMENTS_MAX + RECORDING_LEFT_MAX + 1 <= MESSAGE_RECORDER_SANDBOXES_MAX,
        "the recorder has room for all of them and the daemon");

static bool check_room(struct attaching *t)
{
	const struct attachments *all = t->all;
	const struct attach_request *r = t->request;
	const struct attachment *other;
	struct attach_place place;

	if (all->stopping)
		return refuse(t, ATTACH_BUSY, "the daemon is stopping");
	if (all->recovering)
		return refuse(t, ATTACH_BUSY, ATTACH_RECOVERING);
	if (attachments_count(all) >= ATTACHMENTS_MAX)
		return refuse(t, ATTACH_BUSY, "there are %d sandboxes already", ATTACHMENTS_MAX);
	if (recording_count_left(all->supervisor) >= RECORDING_LEFT_MAX)
		return refuse(t, ATTACH_BUSY,
		        "what %d sandboxes did that have ended is not in the audit log yet: no "
		        "other one is begun before",
		        RECORDING_LEFT_MAX);
	if (!open_files_left())
		return refuse(t, ATTACH_BUSY,
		        "the daemon has too few descriptors left for another sandbox: it may have "
		        "%llu open files, and each sandbox takes about %d; detach one, or raise "
		        "its "
		        "limit (LimitNOFILE= of its unit, or \"ulimit -Hn\" where it is started by "
		        "hand) and start it again",
		        (unsigned long long)open_files_limit(), OPEN_FILES_EACH);
	if (r->name && r->name[0] && attachments_find(t->all, r->name))
		return refuse(t, ATTACH_CONFLICT,
		        "there is a sandbox %s already: detach it, or take another name", r->name);
	if (r->kind != ATTACH_INTERFACE)
		return true;
	place = attach_place_of_interface(r->interface);
	other = attachments_at(all, &place);
	return !other ||
	       refuse(t, ATTACH_CONFLICT, "the interface %s is %s's already: detach that first",
	               r->interface, other->record.name);
}

static bool settle_at(struct attaching *t, const struct attach_place *place)
{
	return attachment_settle_at(t->attachment, place) == 0 ||
	       refuse(t, ATTACH_FAILED, "no memory");
}

static bool take_netns(struct attaching *t)
{
	const struct attachment *other;
	struct attach_place place;
	struct stat st;

	if (attach_netns_is_own(t->netns))
		return refuse(t, ATTACH_INVALID,
		        "that is the network namespace of the host itself: it cannot be guarded "
		        "as a sandbox");
	if (fstat(t->netns, &st) < 0)
		return refuse(t, ATTACH_FAILED, "the namespace: %s", strerror(errno));
	place = attach_place_of_netns(&st);
	other = attachments_at(t->all, &place);
	if (other)
		return refuse(t, ATTACH_CONFLICT,
		        "that network namespace is %s's already: detach that first",
		        other->record.name);
	return settle_at(t, &place);
}

static bool take_interface(struct attaching *t)
{
	const struct attach_place place = attach_place_of_interface(t->request->interface);

	return settle_at(t, &place); /* nobody else is there: check_room() */
}

static bool find_process(struct attaching *t)
{
	const struct attach_request *r = t->request;
	struct attachment *a = t->attachment;
	int error = 0;

	a->pidfd = attach_process_open(r->pid, r->pid_start_time);
	if (a->pidfd < 0)
		error = a->pidfd;
	if (!error)
		error = process_start_time(r->pid, &a->record.pid_start_time);
	if (!error) {
		t->netns = attach_process_netns(&r->caller, r->pid, a->pidfd);
		error = t->netns < 0 ? t->netns : 0;
	}
	if (error == -ESRCH)
		return refuse(t, ATTACH_INVALID, "there is no such process %d", (int)r->pid);
	if (error == -EACCES)
		return refuse(t, ATTACH_INVALID,
		        "process %d is somebody else's: who runs it, or root, may attach it",
		        (int)r->pid);
	if (error)
		return refuse(t, ATTACH_INVALID, "process %d: %s", (int)r->pid, strerror(-error));
	a->record.pid = r->pid;
	return true;
}

static bool find_place(struct attaching *t)
{
	const struct attach_request *r = t->request;

	switch (r->kind) {
	case ATTACH_INTERFACE:
		t->divert = (struct gate_divert){.interface = r->interface,
		        .address4 = r->address4,
		        .address6 = r->address6};
		return take_interface(t);
	case ATTACH_PID:
		return find_process(t) && take_netns(t);
	default:
		break;
	}
	t->netns = attach_netns_open(&r->caller, r->netns);
	if (t->netns == LOCAL_FILE_UNKNOWN)
		return refuse(t, ATTACH_INVALID,
		        "%s may lie where nobody answers: name the namespace as /run/netns/NAME or "
		        "/proc/PID/ns/net",
		        r->netns);
	if (t->netns == -EINVAL)
		return refuse(t, ATTACH_INVALID,
		        "%s is no network namespace: one of ip-netns(8) is /run/netns/NAME, that "
		        "of a "
		        "process /proc/PID/ns/net",
		        r->netns);
	if (t->netns < 0)
		return refuse(t, ATTACH_INVALID, "%s: %s", r->netns, strerror(-t->netns));
	return take_netns(t);
}

/* One that nobody has, not even by chance. */
static void make_name(const struct attachments *all, char out[MESSAGE_NAME_MAX + 1])
{
	uint32_t number;

	random_bytes(&number, sizeof number);
	do
		snprintf(out, MESSAGE_NAME_MAX + 1, "att-%08x", number++);
	while (attachments_find(all, out)); /* of ATTACHMENTS_MAX: it ends */
}

static bool fill_record(struct attaching *t)
{
	const struct attach_request *r = t->request;
	struct attach_record *record = &t->attachment->record;
	if (r->name && r->name[0])
		snprintf(record->name, sizeof record->name, "%s", r->name);
	else
		make_name(t->all, record->name);
	record->kind = r->kind;
	if (r->kind == ATTACH_INTERFACE)
		snprintf(record->interface, sizeof record->interface, "%s", r->interface);
	record->netns = strdup(r->kind == ATTACH_NETNS ? r->netns : "");
	record->policy = strdup(r->policy);
	record->container = r->container;
	record->observe = r->observe;
	record->created_ms = clock_real_ms();
	record->expires_ms = r->ttl_s ? record->created_ms + (int64_t)r->ttl_s * 1000 : 0;
	record->generation = 1;
	if (attach_record_set_identity(record, &r->caller) == 0 && record->netns &&
	        record->policy && attach_pairs_copy(&record->labels, &r->labels) == 0 &&
	        attach_pairs_copy(&record->vars, &r->vars) == 0)
		return true;
	return refuse(t, ATTACH_FAILED, "no memory");
}

static bool load(struct attaching *t, struct generation **out)
{
	struct generation *g = attachment_load(t->attachment, t->request->policy,
	        &t->request->caller, t->files, &t->status, &t->diagnostics);

	*out = g;
	t->remote = !g && t->status == ATTACH_BUSY && t->files == &settings_no_files;
	if (!g)
		snprintf(t->text, sizeof t->text, "%s", attach_load_failure(t->status));
	return g;
}

static bool make_sandbox(struct attaching *t, struct generation *g)
{
	struct attachment *a = t->attachment;
	struct sandbox *s = sandbox_new(t->all->supervisor, &a->owner, true);

	if (!s) {
		generation_put(g);
		return refuse(t, ATTACH_FAILED, "no memory");
	}
	a->sandbox = s;
	a->record.id = s->id;
	memcpy(a->record.seed, s->seed, sizeof s->seed);
	snprintf(s->name, sizeof s->name, "%s", a->record.name);
	attachment_pin(t->all, s->id, s->pin);
	s->generation = g;
	s->netns = t->netns;
	t->netns = -1;
	s->divert = t->request->kind == ATTACH_INTERFACE ? &t->divert : NULL;
	attachment_watch_policy(a);
	return true;
}

/* It is about to change rules of the host. Should this process die before it can say what became of
 * that, the next one knows what to take away: this, and nothing else. */
static bool write_beginning(struct attaching *t)
{
	struct attachment *a = t->attachment;
	struct gate shape;
	int error;

	a->record.undoing = true; /* until it is settled */
	if (a->record.kind != ATTACH_INTERFACE)
		return true; /* what is made for others goes with the gate's namespace */
	gate_name_host_link(&a->sandbox->gate);
	shape = a->sandbox->gate;
	shape.kind = GATE_DIVERT;
	shape.tcp_port = a->sandbox->generation->settings->config.proxy_port;
	memcpy(shape.device, a->record.interface, sizeof shape.device);
	error = state_save(t->all->state, &a->record, &shape);
	if (!error)
		return true;
	state_remove(t->all->state, a->record.name);
	return refuse(t, ATTACH_FAILED, "its state cannot be written: %s", strerror(-error));
}

static bool prepare(struct attaching *t)
{
	struct generation *g;

	if (!check_request(t) || !check_room(t))
		return false;
	t->attachment = attachment_new(t->all);
	if (!t->attachment)
		return refuse(t, ATTACH_FAILED, "no memory");
	if (!fill_record(t) || !find_place(t) || !load(t, &g) || !make_sandbox(t, g))
		return false;
	if (attachment_enter(t->attachment) != 0)
		return refuse(t, ATTACH_FAILED, "no memory");
	return write_beginning(t);
}

static void give_up(struct attaching *t, attach_done done, void *context)
{
	const struct attach_result result = {
	        .status = t->status, .text = t->text, .diagnostics = t->diagnostics};
	struct attach_request request = *t->request;

	if (t->netns >= 0)
		close(t->netns);
	if (t->attachment && request.kind == ATTACH_PID) /* it is to be the same process then */
		request.pid_start_time = t->attachment->record.pid_start_time;
	if (t->attachment)
		attachment_free(t->attachment);
	if (t->remote)
		attachments_attach_later(t->all, &request, done, context);
	else
		done(context, &result);
	free(t->diagnostics);
}

/* It starts: its state is on the disk before it can serve. */
static void settle(struct attachments *all, const char *name)
{
	struct attachment *a = attachments_find(all, name);
	int error;

	if (!a || a->detaching || a->sandbox->state != SANDBOX_STARTING)
		return; /* it has failed, and everybody knows */
	a->sandbox->divert = NULL;
	a->record.undoing = false;
	error = attachment_save(a);
	if (!error)
		error = attachment_watch(a);
	if (error == -ESRCH) {
		a->sandbox->fault = GATE_FAULT_ASKED;
		sandbox_fail(a->sandbox, "process %d has ended meanwhile", (int)a->record.pid);
	} else if (error) {
		sandbox_fail(a->sandbox, "its state cannot be written: %s", strerror(-error));
	}
}

void attachments_attach(struct attachments *all, const struct attach_request *request,
        attach_done done, void *context)
{
	attachments_attach_with(all, request, &settings_no_files, done, context);
}

void attachments_attach_with(struct attachments *all, const struct attach_request *request,
        const struct settings_files *files, attach_done done, void *context)
{
	struct attaching t = {.all = all, .request = request, .netns = -1, .files = files};
	char name[MESSAGE_NAME_MAX + 1];

	if (!prepare(&t)) {
		give_up(&t, done, context);
		return;
	}
	snprintf(name, sizeof name, "%s", t.attachment->record.name);
	if (!attachment_wait(t.attachment, OPERATION_ATTACH, 0, done, context)) {
		state_remove(all->state, name);
		attachment_free(t.attachment);
		return;
	}
	sandbox_event(t.attachment->sandbox, SANDBOX_START); /* may free it */
	settle(all, name);
}
