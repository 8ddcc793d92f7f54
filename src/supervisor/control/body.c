/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members are read by a table: name, type, target. An unknown name is refused, with a hint at the
 * name that was probably meant: with a mistyped "polcy", the attachment must not go on with less
 * than was wanted. The attachments module judges the values (lengths, which names are in use); here
 * only what is needed to make the call is checked.
 */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/base/diag.h"
#include "supervisor/control/body.h"

#define WORD_MAX 96
#define MEMBERS_MAX 16

enum member_type { STRING, INTEGER, BOOLEAN, OBJECT, ARRAY };

struct member {
	const char *name;
	enum member_type type;
	const json_t *value; /* filled in; NULL: missing */
};

__attribute__((format(printf, 2, 3))) static bool wrong(char *fault, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(fault, CONTROL_FAULT_MAX, format, arguments);
	va_end(arguments);
	return false;
}

static bool has_type(const json_t *value, enum member_type type)
{
	switch (type) {
	case STRING:
		return json_is_string(value);
	case INTEGER:
		return json_is_integer(value);
	case BOOLEAN:
		return json_is_boolean(value);
	case OBJECT:
		return json_is_object(value);
	default:
		return json_is_array(value);
	}
}

static const char *const type_names[] = {
        [STRING] = "a string",
        [INTEGER] = "a whole number",
        [BOOLEAN] = "true or false",
        [OBJECT] = "an object",
        [ARRAY] = "an array",
};

static bool unknown(
        const struct member *members, size_t count, const char *where, const char *key, char *fault)
{
	const char *names[MEMBERS_MAX + 1];
	const struct diag_known known = {names, "known here", NULL, NULL};
	char word[WORD_MAX], hint[DIAG_HINT_MAX];

	for (size_t i = 0; i < count; i++)
		names[i] = members[i].name;
	names[count] = NULL;
	slice_escape(slice_from_string(key), word, sizeof(word));
	return wrong(fault, "%s%s: there is no such member%s", where, word,
	        diag_hint(slice_from_string(key), &known, hint));
}

/* where: what precedes a member's name in messages. */
static bool read_members(
        const json_t *body, struct member *members, size_t count, const char *where, char *fault)
{
	const char *key;
	json_t *value;

	/* jansson's iteration takes no const; nothing is changed. */
	for (void *at = json_object_iter((json_t *)(uintptr_t)body); at;
	        at = json_object_iter_next((json_t *)(uintptr_t)body, at)) {
		key = json_object_iter_key(at);
		value = json_object_iter_value(at);
		size_t i = 0;

		while (i < count && strcmp(members[i].name, key) != 0)
			i++;
		if (i == count)
			return unknown(members, count, where, key, fault);
		if (json_is_null(value))
			continue; /* null counts as missing */
		if (!has_type(value, members[i].type))
			return wrong(fault, "%s%s: has to be %s", where, key,
			        type_names[members[i].type]);
		members[i].value = value;
	}
	return true;
}

static const char *text_of(const struct member *member)
{
	return member->value ? json_string_value(member->value) : NULL;
}

static bool read_number(
        const struct member *member, uint64_t min, uint64_t max, uint64_t *out, char *fault)
{
	json_int_t n;

	if (!member->value)
		return true;
	n = json_integer_value(member->value);
	if (n < 0 || (uint64_t)n < min || (uint64_t)n > max)
		return wrong(fault, "%s: %lld is out of range (%llu to %llu)", member->name,
		        (long long)n, (unsigned long long)min, (unsigned long long)max);
	*out = (uint64_t)n;
	return true;
}

static bool read_pairs(const struct member *member, struct attach_pair *pairs, size_t max,
        struct attach_pairs *out, char *fault)
{
	const char *key;
	char word[WORD_MAX];
	json_t *value;

	out->items = pairs;
	if (!member->value)
		return true;
	for (void *at = json_object_iter((json_t *)(uintptr_t)member->value); at;
	        at = json_object_iter_next((json_t *)(uintptr_t)member->value, at)) {
		key = json_object_iter_key(at);
		value = json_object_iter_value(at);
		slice_escape(slice_from_string(key), word, sizeof(word));
		if (!json_is_string(value))
			return wrong(fault, "%s.%s: has to be a string", member->name, word);
		if (out->count == max)
			return wrong(fault, "%s: more than %zu", member->name, max);
		pairs[out->count++] = (struct attach_pair){key, json_string_value(value)};
	}
	return true;
}

static bool read_address(const json_t *value, struct attach_request *request, char *fault)
{
	const char *text = json_string_value(value);
	struct slice whole = slice_from_string(text ? text : ""), part = whole;
	char word[WORD_MAX];
	ptrdiff_t slash = slice_find_byte(whole, '/');
	struct ip address, *target;
	uint64_t bits = 0;

	slice_escape(whole, word, sizeof(word));
	if (slash >= 0)
		part.n = (size_t)slash;
	if (!ip_parse(part, &address))
		return wrong(fault, "addresses: '%s' is not an IP address", word);
	if (slash >= 0 && (!slice_to_u64(slice_of(whole.p + slash + 1, whole.n - part.n - 1),
	                           address.family == 4 ? 32 : 128, &bits) ||
	                          bits == 0))
		return wrong(fault, "addresses: '%s': not a possible prefix length", word);
	target = address.family == 4 ? &request->address4 : &request->address6;
	if (target->family)
		return wrong(fault, "addresses: '%s': at most one of each family", word);
	*target = address;
	*(address.family == 4 ? &request->bits4 : &request->bits6) = (uint8_t)bits;
	return true;
}

static bool read_addresses(const struct member *member, struct attach_request *request, char *fault)
{
	size_t i;

	for (i = 0; i < json_array_size(member->value); i++)
		if (!read_address(json_array_get(member->value, i), request, fault))
			return false;
	return true;
}

static bool copy_word(const struct member *member, char *to, size_t size, char *fault)
{
	const char *text = text_of(member);

	if (!text)
		return true;
	if (strlen(text) >= size)
		return wrong(fault, "container.%s: longer than %zu bytes", member->name, size - 1);
	memcpy(to, text, strlen(text) + 1);
	return true;
}

static bool read_container(const struct member *member, struct attach_request *request, char *fault)
{
	enum { ENGINE, ID, NAME, COUNT };
	struct member members[COUNT] = {
	        [ENGINE] = {.name = "engine"}, [ID] = {.name = "id"}, [NAME] = {.name = "name"}};
	struct attach_container *c = &request->container;

	if (!member->value)
		return true;
	return read_members(member->value, members, COUNT, "container.", fault) &&
	       copy_word(&members[ENGINE], c->engine, sizeof(c->engine), fault) &&
	       copy_word(&members[ID], c->id, sizeof(c->id), fault) &&
	       copy_word(&members[NAME], c->name, sizeof(c->name), fault);
}

enum {
	NAME,
	INTERFACE,
	NETNS,
	PID,
	LISTEN,
	START_TIME,
	ADDRESSES,
	POLICY,
	OBSERVE,
	LABELS,
	VARS,
	TTL,
	CONTAINER,
	FILES,
	ATTACH_MEMBERS
};

/* Up to four octal digits, as chmod(1) takes them. */
static bool read_mode(const struct member *member, mode_t *out, char *fault)
{
	const char *text = text_of(member);
	size_t n = text ? strlen(text) : 0;

	*out = LISTEN_MODE_DEFAULT;
	if (!text)
		return true;
	if (n < 3 || n > 4 || strspn(text, "01234567") != n || (n == 4 && text[0] != '0'))
		return wrong(fault, "listen.mode: three octal digits, such as \"660\"");
	*out = 0;
	for (const char *p = text; *p; p++)
		*out = (mode_t)(*out << 3) | (mode_t)(*p - '0');
	return true;
}

/* Reads a vsock port. From here on the port's name is used as the socket's path. */
static bool read_vsock(struct member *members, size_t count, struct member *cid,
        struct member *port, struct listen_socket *out, char *fault)
{
	struct vsock_name name = {0};
	uint64_t numbers[2] = {0, 0};
	char text[VSOCK_NAME_MAX];
	const char *objection;

	for (size_t i = 0; i < count; i++)
		if (members[i].value && &members[i] != cid && &members[i] != port)
			return wrong(fault,
			        "listen.%s: cid and port go without it: a vsock is not a file",
			        members[i].name);
	cid->name = "listen.cid"; /* names for error messages */
	port->name = "listen.port";
	if (!read_number(cid, 0, UINT32_MAX, &numbers[0], fault) ||
	        !read_number(port, 0, UINT32_MAX, &numbers[1], fault))
		return false;
	objection = vsock_name_objection(numbers[0], numbers[1]);
	if (objection)
		return wrong(fault, "listen: %s", objection);
	name = (struct vsock_name){(uint32_t)numbers[0], (uint32_t)numbers[1]};
	objection = listen_socket_name(out, vsock_name_format(&name, text));
	return !objection || wrong(fault, "listen: %s", objection);
}

static bool read_listen(const struct member *member, struct listen_socket *out, char *fault)
{
	enum { PATH, MODE, UID, GID, CID, PORT, COUNT };
	struct member members[COUNT] = {[PATH] = {.name = "path"},
	        [CID] = {.name = "cid", .type = INTEGER},
	        [PORT] = {.name = "port", .type = INTEGER},
	        [MODE] = {.name = "mode"},
	        [UID] = {.name = "uid", .type = INTEGER},
	        [GID] = {.name = "gid", .type = INTEGER}};
	uint64_t uid = CONTROL_ID_OF_CALLER, gid = CONTROL_ID_OF_CALLER;
	const char *path, *objection;
	char shown[WORD_MAX];

	if (!member->value)
		return true;
	if (!read_members(member->value, members, COUNT, "listen.", fault))
		return false;
	if (members[CID].value || members[PORT].value)
		return read_vsock(members, COUNT, &members[CID], &members[PORT], out, fault);
	members[UID].name = "listen.uid"; /* as messages name it */
	members[GID].name = "listen.gid";
	if (!read_mode(&members[MODE], &out->mode, fault) ||
	        !read_number(&members[UID], 0, UINT32_MAX - 1, &uid, fault) ||
	        !read_number(&members[GID], 0, UINT32_MAX - 1, &gid, fault))
		return false;
	path = text_of(&members[PATH]);
	objection = path ? listen_path_objection(path) : NULL;
	if (!path)
		return wrong(fault,
		        "listen.path: where is the socket to be made? (or cid and port, "
		        "of a vsock)");
	if (objection)
		return wrong(fault, "listen.path: \"%s\": %s",
		        slice_escape(slice_from_string(path), shown, sizeof(shown)), objection);
	memcpy(out->path, path, strlen(path) + 1);
	out->uid = (uid_t)uid;
	out->gid = (gid_t)gid;
	return true;
}

static bool read_kind(const struct member *m, struct attach_request *request, char *fault)
{
	/* Beside a namespace, the pid is the process with which the sandbox ends. */
	bool by_pid = m[PID].value && !m[NETNS].value;
	int count = !!m[INTERFACE].value + !!m[NETNS].value + by_pid + !!m[LISTEN].value;
	uint64_t pid = 0;

	if (count != 1)
		return wrong(fault,
		        "%s: one of interface, netns, pid and listen says what to attach to",
		        count ? "too many" : "none given");
	request->kind = m[INTERFACE].value ? ATTACH_INTERFACE
	                : m[NETNS].value   ? ATTACH_NETNS
	                : m[LISTEN].value  ? ATTACH_LISTEN
	                                   : ATTACH_PID;
	request->interface = text_of(&m[INTERFACE]);
	request->netns = text_of(&m[NETNS]);
	if (!m[PID].value && (m[START_TIME].value || m[CONTAINER].value))
		return wrong(fault, "start_time and container need a pid");
	if (!read_number(&m[PID], 1, INT32_MAX, &pid, fault))
		return false;
	request->pid = (pid_t)pid;
	return read_listen(&m[LISTEN], &request->listen, fault) &&
	       read_number(&m[START_TIME], 0, INT64_MAX, &request->pid_start_time, fault);
}

static bool check_absolute(const char *member, const char *path, char *fault)
{
	char shown[WORD_MAX];

	if (path[0] == '/')
		return true;
	return wrong(fault, "%s: \"%s\" is not an absolute path", member,
	        slice_escape(slice_from_string(path), shown, sizeof(shown)));
}

bool control_body_attach(const json_t *body, struct control_attach *out, char *fault)
{
	struct member m[ATTACH_MEMBERS] = {[NAME] = {.name = "name"},
	        [INTERFACE] = {.name = "interface"},
	        [NETNS] = {.name = "netns"},
	        [PID] = {.name = "pid", .type = INTEGER},
	        [LISTEN] = {.name = "listen", .type = OBJECT},
	        [START_TIME] = {.name = "start_time", .type = INTEGER},
	        [ADDRESSES] = {.name = "addresses", .type = ARRAY},
	        [POLICY] = {.name = "policy"},
	        [OBSERVE] = {.name = "observe", .type = BOOLEAN},
	        [LABELS] = {.name = "labels", .type = OBJECT},
	        [VARS] = {.name = "vars", .type = OBJECT},
	        [TTL] = {.name = "ttl_s", .type = INTEGER},
	        [CONTAINER] = {.name = "container", .type = OBJECT},
	        [FILES] = {.name = "files", .type = BOOLEAN}};
	struct attach_request *request = &out->request;
	uint64_t ttl = 0;

	memset(out, 0, sizeof(*out));
	if (!body)
		return wrong(fault, "the request has no body: what is to be attached?");
	if (!read_members(body, m, ATTACH_MEMBERS, "", fault) || !read_kind(m, request, fault) ||
	        !read_addresses(&m[ADDRESSES], request, fault) ||
	        !read_pairs(&m[LABELS], out->labels, ATTACH_LABELS_MAX, &request->labels, fault) ||
	        !read_pairs(&m[VARS], out->vars, ATTACH_VARS_MAX, &request->vars, fault) ||
	        !read_number(&m[TTL], 1, ATTACH_TTL_MAX_S, &ttl, fault) ||
	        !read_container(&m[CONTAINER], request, fault))
		return false;
	request->name = text_of(&m[NAME]);
	request->policy = text_of(&m[POLICY]);
	request->observe = json_is_true(m[OBSERVE].value);
	request->ttl_s = (uint32_t)ttl;
	out->files = json_is_true(m[FILES].value);
	if (request->name && !request->name[0])
		return wrong(fault, "name: is empty; without it, one is made up");
	if (!request->policy)
		return wrong(fault, "policy: the absolute path of a policy file is needed");
	if (!check_absolute("policy", request->policy, fault) ||
	        (request->kind == ATTACH_NETNS && !check_absolute("netns", request->netns, fault)))
		return false;
	if (out->files && request->kind != ATTACH_PID)
		return wrong(fault, "files: can be written for a pid only");
	return true;
}

static bool needs_body(const json_t *body, struct control_attach *out, char *fault)
{
	memset(out, 0, sizeof(*out));
	return body || wrong(fault, "the request has no body");
}

bool control_body_prepare(const json_t *body, struct control_attach *out, char *fault)
{
	enum { PREPARED_NAME, PREPARED_NETNS, PREPARED_ADDRESSES, COUNT };
	struct member m[COUNT] = {[PREPARED_NAME] = {.name = "name"},
	        [PREPARED_NETNS] = {.name = "netns"},
	        [PREPARED_ADDRESSES] = {.name = "addresses"}};
	struct attach_request *request = &out->request;
	const char *addresses;

	if (!needs_body(body, out, fault) || !read_members(body, m, COUNT, "", fault))
		return false;
	addresses = text_of(&m[PREPARED_ADDRESSES]);
	*request = (struct attach_request){.purpose = ATTACH_TO_PREPARE,
	        .kind = ATTACH_NETNS,
	        .name = text_of(&m[PREPARED_NAME]),
	        .netns = text_of(&m[PREPARED_NETNS]),
	        .same_addresses = addresses && strcmp(addresses, "same") == 0};
	if (!request->netns)
		return wrong(fault, "netns: the absolute path of a network namespace is needed");
	if (addresses && !request->same_addresses && strcmp(addresses, "own") != 0)
		return wrong(fault, "addresses: \"same\" or \"own\"");
	return check_absolute("netns", request->netns, fault);
}

enum {
	CLAIM_NAME,
	CLAIM_NETNS,
	CLAIM_POLICY,
	CLAIM_OBSERVE,
	CLAIM_LABELS,
	CLAIM_VARS,
	CLAIM_TTL,
	CLAIM_LIKE,
	CLAIM_WAIT,
	CLAIM_MEMBERS
};

bool control_body_claim(const json_t *body, struct control_attach *out, char *fault)
{
	struct member m[CLAIM_MEMBERS] = {[CLAIM_NAME] = {.name = "name"},
	        [CLAIM_NETNS] = {.name = "netns"},
	        [CLAIM_POLICY] = {.name = "policy"},
	        [CLAIM_OBSERVE] = {.name = "observe", .type = BOOLEAN},
	        [CLAIM_LABELS] = {.name = "labels", .type = OBJECT},
	        [CLAIM_VARS] = {.name = "vars", .type = OBJECT},
	        [CLAIM_TTL] = {.name = "ttl_s", .type = INTEGER},
	        [CLAIM_LIKE] = {.name = "like"},
	        [CLAIM_WAIT] = {.name = "wait", .type = BOOLEAN}};
	struct attach_request *request = &out->request;
	uint64_t ttl = 0;

	if (!needs_body(body, out, fault) || !read_members(body, m, CLAIM_MEMBERS, "", fault) ||
	        !read_pairs(&m[CLAIM_LABELS], out->labels, ATTACH_LABELS_MAX, &request->labels,
	                fault) ||
	        !read_pairs(&m[CLAIM_VARS], out->vars, ATTACH_VARS_MAX, &request->vars, fault) ||
	        !read_number(&m[CLAIM_TTL], 1, ATTACH_TTL_MAX_S, &ttl, fault))
		return false;
	request->purpose = ATTACH_TO_CLAIM;
	request->kind = ATTACH_NETNS;
	request->name = text_of(&m[CLAIM_NAME]);
	request->netns = text_of(&m[CLAIM_NETNS]);
	request->policy = text_of(&m[CLAIM_POLICY]);
	request->observe = json_is_true(m[CLAIM_OBSERVE].value);
	request->ttl_s = (uint32_t)ttl;
	request->like = text_of(&m[CLAIM_LIKE]);
	request->wait = json_is_true(m[CLAIM_WAIT].value);
	if (request->name && !request->name[0])
		return wrong(fault, "name: is empty; without it, one is made up");
	if (!request->policy)
		return wrong(fault, "policy: the absolute path of a policy file is needed");
	return check_absolute("policy", request->policy, fault) &&
	       (!request->netns || check_absolute("netns", request->netns, fault));
}

static bool read_from(const struct member *member, struct session_token *out, char *fault)
{
	char word[WORD_MAX];

	if (json_array_size(member->value) > MESSAGE_FROM_MAX)
		return wrong(fault, "from: more than %d networks", MESSAGE_FROM_MAX);
	for (size_t i = 0; i < json_array_size(member->value); i++) {
		const char *text = json_string_value(json_array_get(member->value, i));
		struct slice network = slice_from_string(text ? text : "");

		if (!ip_prefix_parse(network, &out->from[out->from_count++]))
			return wrong(fault,
			        "from: '%s' is not a network such as 203.0.113.0/24 or "
			        "2001:db8::/32, with no bits set behind the prefix",
			        slice_escape(network, word, sizeof(word)));
	}
	return true;
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hash(
        const struct member *member, uint8_t out[MESSAGE_TOKEN_HASH_BYTES], char *fault)
{
	const char *text = text_of(member);
	bool good = !text || strlen(text) == 2 * (size_t)MESSAGE_TOKEN_HASH_BYTES;

	for (size_t i = 0; text && good && i < MESSAGE_TOKEN_HASH_BYTES; i++) {
		int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);

		good = high >= 0 && low >= 0;
		if (good)
			out[i] = (uint8_t)(high << 4 | low);
	}
	return good ||
	       wrong(fault, "certificate_sha256: has to be 64 hex digits, in small letters");
}

enum {
	SESSION_NAME,
	SESSION_POLICY,
	SESSION_OBSERVE,
	SESSION_LABELS,
	SESSION_VARS,
	SESSION_TTL,
	SESSION_FROM,
	SESSION_CERTIFICATE,
	SESSION_BY_ADDRESS,
	SESSION_MEMBERS
};

bool control_body_session(const json_t *body, struct control_attach *out, char *fault)
{
	struct member m[SESSION_MEMBERS] = {[SESSION_NAME] = {.name = "name"},
	        [SESSION_POLICY] = {.name = "policy"},
	        [SESSION_OBSERVE] = {.name = "observe", .type = BOOLEAN},
	        [SESSION_LABELS] = {.name = "labels", .type = OBJECT},
	        [SESSION_VARS] = {.name = "vars", .type = OBJECT},
	        [SESSION_TTL] = {.name = "ttl_s", .type = INTEGER},
	        [SESSION_FROM] = {.name = "from", .type = ARRAY},
	        [SESSION_CERTIFICATE] = {.name = "certificate_sha256"},
	        [SESSION_BY_ADDRESS] = {.name = "by_address", .type = BOOLEAN}};
	struct attach_request *request = &out->request;
	uint64_t ttl = CONTROL_SESSION_TTL_S;

	if (!needs_body(body, out, fault) || !read_members(body, m, SESSION_MEMBERS, "", fault) ||
	        !read_pairs(&m[SESSION_LABELS], out->labels, ATTACH_LABELS_MAX, &request->labels,
	                fault) ||
	        !read_pairs(&m[SESSION_VARS], out->vars, ATTACH_VARS_MAX, &request->vars, fault) ||
	        !read_number(&m[SESSION_TTL], 1, ATTACH_TTL_MAX_S, &ttl, fault) ||
	        !read_from(&m[SESSION_FROM], &request->session, fault) ||
	        !read_hash(&m[SESSION_CERTIFICATE], request->session.hash, fault))
		return false;
	request->kind = ATTACH_SESSION;
	request->name = text_of(&m[SESSION_NAME]);
	request->policy = text_of(&m[SESSION_POLICY]);
	request->observe = json_is_true(m[SESSION_OBSERVE].value);
	request->ttl_s = (uint32_t)ttl;
	request->session.by_certificate = m[SESSION_CERTIFICATE].value;
	request->session.by_address = json_is_true(m[SESSION_BY_ADDRESS].value);
	if (request->name && !request->name[0])
		return wrong(fault, "name: is empty; without it, one is made up");
	if (!request->policy)
		return wrong(fault, "policy: the absolute path of a policy file is needed");
	return check_absolute("policy", request->policy, fault);
}

bool control_body_extend(const json_t *body, uint32_t *ttl_s, char *fault)
{
	struct member m = {.name = "ttl_s", .type = INTEGER};
	uint64_t ttl = 0;

	if (body && !read_members(body, &m, 1, "", fault))
		return false;
	if (!m.value)
		return wrong(fault, "ttl_s: how many seconds is the session to last from now on?");
	if (!read_number(&m, 1, ATTACH_TTL_MAX_S, &ttl, fault))
		return false;
	*ttl_s = (uint32_t)ttl;
	return true;
}

bool control_body_revoke_token(
        const json_t *body, const char **signer, const char **id, char *fault)
{
	enum { SIGNER, ID, COUNT };
	struct member m[COUNT] = {[SIGNER] = {.name = "signer"}, [ID] = {.name = "id"}};

	if (body && !read_members(body, m, COUNT, "", fault))
		return false;
	*signer = text_of(&m[SIGNER]);
	*id = text_of(&m[ID]);
	if (!*signer || !(*signer)[0])
		return wrong(fault, "signer: the name of a signer of the configuration is needed");
	return (*id && (*id)[0]) ||
	       wrong(fault, "id: the token's jti is needed, or the claim that names its session");
}

bool control_body_follow(const json_t *body, pid_t *pid, uint64_t *start_time, char *fault)
{
	enum { PROCESS, STARTED, COUNT };
	struct member m[COUNT] = {[PROCESS] = {.name = "pid", .type = INTEGER},
	        [STARTED] = {.name = "start_time", .type = INTEGER}};
	uint64_t number = 0;

	*start_time = 0;
	if (body && !read_members(body, m, COUNT, "", fault))
		return false;
	if (!m[PROCESS].value)
		return wrong(fault, "pid: the process with which the sandbox is to end is needed");
	if (!read_number(&m[PROCESS], 1, INT32_MAX, &number, fault))
		return false;
	*pid = (pid_t)number;
	return read_number(&m[STARTED], 0, INT64_MAX, start_time, fault);
}

bool control_body_reload(const json_t *body, const char **policy, char *fault)
{
	struct member m = {.name = "policy"};

	*policy = NULL;
	if (body && !read_members(body, &m, 1, "", fault))
		return false;
	*policy = text_of(&m);
	return !*policy || check_absolute("policy", *policy, fault);
}

bool control_body_pause(const json_t *body, const char **reason, char *fault)
{
	struct member m = {.name = "reason"};

	*reason = NULL;
	if (body && !read_members(body, &m, 1, "", fault))
		return false;
	*reason = text_of(&m);
	if (*reason && strlen(*reason) > ATTACH_REASON_MAX)
		return wrong(fault, "reason: longer than %d bytes", ATTACH_REASON_MAX);
	return true;
}

bool control_body_approve(const json_t *body, struct attach_decision *out, char *fault)
{
	enum { FOR, ALWAYS, RULE, COUNT };
	struct member m[COUNT] = {[FOR] = {.name = "for_s", .type = INTEGER},
	        [ALWAYS] = {.name = "always", .type = BOOLEAN},
	        [RULE] = {.name = "whole_rule", .type = BOOLEAN}};
	uint64_t seconds = 0;
	bool always;

	if (body && !read_members(body, m, COUNT, "", fault))
		return false;
	if (!read_number(&m[FOR], 1, ATTACH_GRANT_MAX_S, &seconds, fault))
		return false;
	always = json_is_true(m[ALWAYS].value);
	if (always && m[FOR].value)
		return wrong(fault, "for_s, always: one of them");
	out->lasts = always || m[FOR].value;
	out->for_s = (uint32_t)seconds;
	out->whole = json_is_true(m[RULE].value);
	return !out->whole || out->lasts ||
	       wrong(fault, "whole_rule: belongs to for_s or always: one request is approved once");
}

bool control_body_credential(const json_t *body, const char **credential, char *fault)
{
	struct member m = {.name = "credential"};

	*credential = NULL;
	if (body && !read_members(body, &m, 1, "", fault))
		return false;
	*credential = text_of(&m);
	if (!*credential || !**credential)
		return wrong(fault, "credential: which one? GET .../credentials names them");
	if (strlen(*credential) > POLICY_NAME_MAX)
		return wrong(fault, "credential: longer than %d bytes", POLICY_NAME_MAX);
	return true;
}

enum { CA_CERTIFICATE, CA_ROOT, CA_OVERLAP, CA_NAME, CA_MEMBERS };

/* Reads the members from first on, count of them. */
static bool read_ca(
        const json_t *body, size_t first, size_t count, struct control_ca *out, char *fault)
{
	struct member m[CA_MEMBERS] = {[CA_CERTIFICATE] = {.name = "certificate"},
	        [CA_ROOT] = {.name = "root"},
	        [CA_OVERLAP] = {.name = "overlap_s", .type = INTEGER},
	        [CA_NAME] = {.name = "name"}};
	const char **const texts[CA_MEMBERS] = {[CA_CERTIFICATE] = &out->certificate,
	        [CA_ROOT] = &out->root,
	        [CA_NAME] = &out->name};

	*out = (struct control_ca){.name = "", .certificate = "", .root = ""};
	if (body && !read_members(body, &m[first], count, "", fault))
		return false;
	for (size_t i = 0; i < CA_MEMBERS; i++)
		if (texts[i] && m[i].value)
			*texts[i] = text_of(&m[i]);
	if (strlen(out->name) > MESSAGE_NAME_MAX)
		return wrong(fault, "name: longer than %d bytes", MESSAGE_NAME_MAX);
	return read_number(&m[CA_OVERLAP], 1, MESSAGE_CA_OVERLAP_MAX_S, &out->overlap_s, fault);
}

bool control_body_ca_csr(const json_t *body, struct control_ca *out, char *fault)
{
	return read_ca(body, CA_NAME, 1, out, fault);
}

bool control_body_ca_install(const json_t *body, struct control_ca *out, char *fault)
{
	if (!read_ca(body, CA_CERTIFICATE, CA_NAME - CA_CERTIFICATE, out, fault))
		return false;
	if (!out->certificate[0])
		return wrong(fault, "certificate: the PEM text of the certificate is needed");
	if (strlen(out->certificate) > MESSAGE_PAPERS_MAX || strlen(out->root) > MESSAGE_PAPERS_MAX)
		return wrong(fault, "certificate, root: more than %d bytes", MESSAGE_PAPERS_MAX);
	return true;
}

bool control_body_ca_rotate(const json_t *body, struct control_ca *out, char *fault)
{
	return read_ca(body, CA_OVERLAP, CA_MEMBERS - CA_OVERLAP, out, fault);
}

bool control_body_empty(const json_t *body, char *fault)
{
	return !body || json_object_size(body) == 0 ||
	       wrong(fault, "this request takes no members");
}
