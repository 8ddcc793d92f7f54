/* SPDX-License-Identifier: Apache-2.0 */
/* What to attach, and how: the bodies of calls that begin with a namespace, a process, an interface
 * or a socket. */
#include <string.h>

#include "supervisor/control/body_terms.h"

static bool read_address(const json_t *value, struct attach_request *request, char *fault)
{
	const char *text = json_string_value(value);
	struct slice whole = slice_from_string(text ? text : ""), part = whole;
	char word[MEMBER_WORD_MAX];
	ptrdiff_t slash = slice_find_byte(whole, '/');
	struct ip address, *target;
	uint64_t bits = 0;

	slice_escape(whole, word, sizeof(word));
	if (slash >= 0)
		part.n = (size_t)slash;
	if (!ip_parse(part, &address))
		return member_fault(fault, "addresses: '%s' is not an IP address", word);
	if (slash >= 0 && (!slice_to_u64(slice_of(whole.p + slash + 1, whole.n - part.n - 1),
	                           address.family == 4 ? 32 : 128, &bits) ||
	                          bits == 0))
		return member_fault(fault, "addresses: '%s': not a possible prefix length", word);
	target = address.family == 4 ? &request->address4 : &request->address6;
	if (target->family)
		return member_fault(fault, "addresses: '%s': at most one of each family", word);
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
	const char *text = member_text(member);

	if (!text)
		return true;
	if (strlen(text) >= size)
		return member_fault(
		        fault, "container.%s: longer than %zu bytes", member->name, size - 1);
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
	return members_read(member->value, members, COUNT, "container.", fault) &&
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
	const char *text = member_text(member);
	size_t n = text ? strlen(text) : 0;

	*out = LISTEN_MODE_DEFAULT;
	if (!text)
		return true;
	if (n < 3 || n > 4 || strspn(text, "01234567") != n || (n == 4 && text[0] != '0'))
		return member_fault(fault, "listen.mode: three octal digits, such as \"660\"");
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
			return member_fault(fault,
			        "listen.%s belongs to a path: cid and port name a vsock, which is "
			        "no file",
			        members[i].name);
	cid->name = "listen.cid"; /* names for error messages */
	port->name = "listen.port";
	if (!member_number(cid, 0, UINT32_MAX, &numbers[0], fault) ||
	        !member_number(port, 0, UINT32_MAX, &numbers[1], fault))
		return false;
	objection = vsock_name_objection(numbers[0], numbers[1]);
	if (objection)
		return member_fault(fault, "listen: %s", objection);
	name = (struct vsock_name){(uint32_t)numbers[0], (uint32_t)numbers[1]};
	objection = listen_socket_name(out, vsock_name_format(&name, text));
	return !objection || member_fault(fault, "listen: %s", objection);
}

static bool read_listen(const struct member *member, struct listen_socket *out, char *fault)
{
	enum { PATH, MODE, UID, GID, CID, PORT, COUNT };
	struct member members[COUNT] = {[PATH] = {.name = "path"},
	        [CID] = {.name = "cid", .type = MEMBER_INTEGER},
	        [PORT] = {.name = "port", .type = MEMBER_INTEGER},
	        [MODE] = {.name = "mode"},
	        [UID] = {.name = "uid", .type = MEMBER_INTEGER},
	        [GID] = {.name = "gid", .type = MEMBER_INTEGER}};
	uint64_t uid = CONTROL_ID_OF_CALLER, gid = CONTROL_ID_OF_CALLER;
	const char *path, *objection;
	char shown[MEMBER_WORD_MAX];

	if (!member->value)
		return true;
	if (!members_read(member->value, members, COUNT, "listen.", fault))
		return false;
	if (members[CID].value || members[PORT].value)
		return read_vsock(members, COUNT, &members[CID], &members[PORT], out, fault);
	members[UID].name = "listen.uid"; /* as messages name it */
	members[GID].name = "listen.gid";
	if (!read_mode(&members[MODE], &out->mode, fault) ||
	        !member_number(&members[UID], 0, UINT32_MAX - 1, &uid, fault) ||
	        !member_number(&members[GID], 0, UINT32_MAX - 1, &gid, fault))
		return false;
	path = member_text(&members[PATH]);
	objection = path ? listen_path_objection(path) : NULL;
	if (!path)
		return member_fault(fault,
		        "listen.path: where is the socket to be made? (or cid and port, "
		        "of a vsock)");
	if (objection)
		return member_fault(fault, "listen.path: \"%s\": %s",
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
		return member_fault(fault,
		        "%s: one of interface, netns, pid and listen says what to attach to",
		        count ? "too many" : "none given");
	request->kind = m[INTERFACE].value ? ATTACH_INTERFACE
	                : m[NETNS].value   ? ATTACH_NETNS
	                : m[LISTEN].value  ? ATTACH_LISTEN
	                                   : ATTACH_PID;
	request->interface = member_text(&m[INTERFACE]);
	request->netns = member_text(&m[NETNS]);
	if (!m[PID].value && (m[START_TIME].value || m[CONTAINER].value))
		return member_fault(fault, "start_time and container need a pid");
	if (!member_number(&m[PID], 1, INT32_MAX, &pid, fault))
		return false;
	request->pid = (pid_t)pid;
	return read_listen(&m[LISTEN], &request->listen, fault) &&
	       member_number(&m[START_TIME], 0, INT64_MAX, &request->pid_start_time, fault);
}

bool control_body_attach(const json_t *body, struct control_attach *out, char *fault)
{
	struct member m[ATTACH_MEMBERS] = {[NAME] = {.name = "name"},
	        [INTERFACE] = {.name = "interface"},
	        [NETNS] = {.name = "netns"},
	        [PID] = {.name = "pid", .type = MEMBER_INTEGER},
	        [LISTEN] = {.name = "listen", .type = MEMBER_OBJECT},
	        [START_TIME] = {.name = "start_time", .type = MEMBER_INTEGER},
	        [ADDRESSES] = {.name = "addresses", .type = MEMBER_ARRAY},
	        [POLICY] = {.name = "policy"},
	        [OBSERVE] = {.name = "observe", .type = MEMBER_BOOLEAN},
	        [LABELS] = {.name = "labels", .type = MEMBER_OBJECT},
	        [VARS] = {.name = "vars", .type = MEMBER_OBJECT},
	        [TTL] = {.name = "ttl_s", .type = MEMBER_INTEGER},
	        [CONTAINER] = {.name = "container", .type = MEMBER_OBJECT},
	        [FILES] = {.name = "files", .type = MEMBER_BOOLEAN}};
	const struct body_terms terms = {
	        &m[NAME], &m[POLICY], &m[OBSERVE], &m[LABELS], &m[VARS], &m[TTL]};
	struct attach_request *request = &out->request;

	memset(out, 0, sizeof(*out));
	if (!body)
		return member_fault(fault, "the request has no body: what is to be attached?");
	if (!members_read(body, m, ATTACH_MEMBERS, "", fault) || !read_kind(m, request, fault) ||
	        !read_addresses(&m[ADDRESSES], request, fault) ||
	        !body_terms_read(&terms, 0, out, fault) ||
	        !read_container(&m[CONTAINER], request, fault))
		return false;
	out->files = json_is_true(m[FILES].value);
	if (!body_terms_check(request, fault) ||
	        (request->kind == ATTACH_NETNS &&
	                !member_is_absolute("netns", request->netns, fault)))
		return false;
	if (out->files && request->kind != ATTACH_PID)
		return member_fault(fault, "files: can be written for a pid only");
	return true;
}
