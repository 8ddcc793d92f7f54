/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a request before anything is opened for it: texts, numbers and addresses that are invalid
 * in any case; then whether the daemon has room, and whether name and interface are free. Each
 * refusal is one sentence for the caller.
 */
#include <stdio.h>

#include "supervisor/attach/transaction.h"
#include "supervisor/os/fd_limit.h"
#include "supervisor/session/session.h"

#define INTERFACE_NAME_MAX (IFNAMSIZ - 1)

static bool is_absolute(const char *path)
{
	return path && path[0] == '/' && strlen(path) <= MESSAGE_PATH_MAX;
}

/* Nobody sends from such an address: the sandbox would be cut off silently. */
static bool check_address(struct attach_transaction *t, const struct ip *address)
{
	const enum ip_class class = ip_classify(address);
	char text[IP_TEXT_MAX];

	if (!address->family ||
	        (class != IP_UNSPECIFIED && class != IP_LOOPBACK && class != IP_MULTICAST &&
	                class != IP_BROADCAST && class != IP_MAPPED))
		return true;
	return attach_transaction_refuse(t, ATTACH_INVALID,
	        "no sandbox can have the address %s: it is %s", ip_format(address, text),
	        ip_class_name(class));
}

/* The text in a refusal, cut to SHOWN_BYTES. */
#define SHOWN_BYTES 96

static const char *show(const char *text, char out[SHOWN_BYTES])
{
	return slice_escape(slice_from_string(text), out, SHOWN_BYTES);
}

/* An interface may have alternative names (ip-link(8), altname). Rules and records use its own
 * name: under another one it could be attached twice, or not be found again. */
static void find_own_name(struct attach_transaction *t, const char *name)
{
	unsigned index = if_nametoindex(name);

	if (!index || !if_indextoname(index, t->interface))
		snprintf(t->interface, sizeof(t->interface), "%s", name);
}

static bool check_interface(struct attach_transaction *t)
{
	const char *name = t->request->interface;
	char shown[SHOWN_BYTES];

	if (!name || !name[0] || strlen(name) > INTERFACE_NAME_MAX || strchr(name, '/') ||
	        strchr(name, ' '))
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "%s: an interface's name has 1 to %d characters, none a slash or space",
		        show(name ? name : "", shown), INTERFACE_NAME_MAX);
	find_own_name(t, name);
	return check_address(t, &t->request->address4) && check_address(t, &t->request->address6);
}

static bool refuse_pair(
        struct attach_transaction *t, const char *objection, const struct attach_pair *pair)
{
	char key[SHOWN_BYTES];

	return pair ? attach_transaction_refuse(
	                      t, ATTACH_INVALID, "%s: %s", show(pair->key, key), objection)
	            : attach_transaction_refuse(t, ATTACH_INVALID, "%s", objection);
}

static bool check_texts(struct attach_transaction *t)
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
		return attach_transaction_refuse(t, ATTACH_INVALID, "%s", objection);
	return !r->name || !r->name[0] || message_name_is_plain(slice_from_string(r->name)) ||
	       attach_transaction_refuse(t, ATTACH_INVALID, "%s: " MESSAGE_NAME_RULE,
	               show(r->name, name), MESSAGE_NAME_MAX);
}

static bool check_listen(struct attach_transaction *t)
{
	struct listen_socket copy = t->request->listen;
	const struct listen_socket *s = &t->request->listen;
	const char *objection = listen_socket_name(&copy, s->path);
	char shown[SHOWN_BYTES];

	if (objection)
		return attach_transaction_refuse(
		        t, ATTACH_INVALID, "%s: %s", show(s->path, shown), objection);
	return s->mode <= LISTEN_MODE_MAX ||
	       attach_transaction_refuse(t, ATTACH_INVALID, "the mode of a socket is at most 0777");
}

/* Refuses a certificate if the gateway asks for none, or if it proves another session. */
static bool check_certificate(struct attach_transaction *t)
{
	char why[ATTACH_CERTIFICATE_WHY_MAX];
	const enum attach_status status =
	        attachments_may_certify(t->all, t->request->session.hash, why);

	return status == ATTACH_OK || attach_transaction_refuse(t, status, "%s", why);
}

static bool overlap(const struct session_token *x, const struct session_token *y)
{
	for (size_t i = 0; i < x->from_count; i++)
		for (size_t k = 0; k < y->from_count; k++)
			if (ip_in_prefix(&x->from[i].base, &y->from[k]) ||
			        ip_in_prefix(&y->from[k].base, &x->from[i]))
				return true;
	return false;
}

/* Refuses a session by address if no listener serves such sessions, or if another one has one of
 * its addresses. */
static bool check_by_address(struct attach_transaction *t)
{
	const struct config_gateway *gateway = &t->all->supervisor->gateway.config;
	const struct session_token *token = &t->request->session;
	const struct attachment *a;
	bool listens = false;

	if (token->by_certificate)
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "a session has one proof: a certificate, or its address");
	if (!token->from_count)
		return attach_transaction_refuse(
		        t, ATTACH_INVALID, "which address? Without \"from\" it could be anybody's");
	for (size_t i = 0; i < gateway->listener_count; i++)
		listens = listens || gateway->listeners[i].kind == CONFIG_GATEWAY_TRANSPARENT;
	if (!listens)
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "the gateway has no listener for sessions by address: write "
		        "\"listen_transparent\" into the section \"gateway\" of the configuration, "
		        "and reload it");
	for (a = t->all->by_name; a; a = a->hh.next)
		if (a->record.kind == ATTACH_SESSION && a->record.session.by_address &&
		        overlap(&a->record.session, token))
			return attach_transaction_refuse(t, ATTACH_CONFLICT,
			        "one of these addresses already belongs to session %s",
			        a->record.name);
	return true;
}

/* Refuses a session for callbacks that an address proves, or that no listener serves. */
static bool check_callback(struct attach_transaction *t)
{
	const struct config_gateway *gateway = &t->all->supervisor->gateway.config;
	bool listens = false;

	if (t->request->session.by_address)
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "who asks for a session's credentials has to prove it with a token or a "
		        "certificate: an address is not enough for callbacks");
	for (size_t i = 0; i < gateway->listener_count; i++)
		listens = listens || gateway->listeners[i].kind == CONFIG_GATEWAY_CALLBACKS;
	return listens || attach_transaction_refuse(t, ATTACH_INVALID,
	                          "the gateway takes no callbacks: write \"listen_callbacks\" "
	                          "into the section \"gateway\" of the configuration, and "
	                          "reload it");
}

static bool check_session(struct attach_transaction *t)
{
	if (!t->all->supervisor->gateway.config.listener_count)
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "there is no gateway where a session could come in: give the configuration "
		        "a section \"gateway\", and reload it");
	if (t->request->session.from_count > MESSAGE_FROM_MAX)
		return attach_transaction_refuse(
		        t, ATTACH_INVALID, "a session has at most %d networks", MESSAGE_FROM_MAX);
	if (t->request->session.callback && !check_callback(t))
		return false;
	if (t->request->session.by_address)
		return check_by_address(t);
	return !t->request->session.by_certificate || check_certificate(t);
}

bool attach_transaction_check_request(struct attach_transaction *t)
{
	const struct attach_request *r = t->request;

	if (!check_texts(t))
		return false;
	if (r->purpose != ATTACH_TO_PREPARE && !is_absolute(r->policy))
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "the policy's path has to be absolute, of at most %d bytes",
		        MESSAGE_PATH_MAX);
	if (r->caller.group_count > IDENTITY_GROUPS_MAX)
		return attach_transaction_refuse(
		        t, ATTACH_INVALID, ATTACH_GROUPS_RULE, IDENTITY_GROUPS_MAX);
	if (r->ttl_s > ATTACH_TTL_MAX_S)
		return attach_transaction_refuse(
		        t, ATTACH_INVALID, "ttl_s is at most %u", ATTACH_TTL_MAX_S);
	if (r->kind == ATTACH_NETNS && !is_absolute(r->netns) &&
	        (r->netns || r->purpose != ATTACH_TO_CLAIM))
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "the namespace's path has to be absolute, of at most %d bytes",
		        MESSAGE_PATH_MAX);
	if (r->kind == ATTACH_PID && r->pid <= 0)
		return attach_transaction_refuse(
		        t, ATTACH_INVALID, "a process has a number above 0");
	if (r->kind == ATTACH_INTERFACE)
		return check_interface(t);
	if ((r->kind == ATTACH_LISTEN && !check_listen(t)) ||
	        (r->kind == ATTACH_SESSION && !check_session(t)))
		return false;
	if (r->address4.family || r->address6.family)
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "addresses can be given for an interface only: other sandboxes get theirs "
		        "from the pools of the configuration");
	return true;
}

_Static_assert(
        ATTACHMENTS_MAX + SESSIONS_MAX + RECORDING_LEFT_MAX + 1 <= MESSAGE_RECORDER_SANDBOXES_MAX,
        "the recorder has room for all of them and the daemon");

/* A claim takes the place of what it claims. */
static bool check_count(struct attach_transaction *t)
{
	const struct attachments *all = t->all;
	const size_t others = attachments_count(all) - all->session_count;

	if (t->request->kind == ATTACH_SESSION && all->session_count >= SESSIONS_MAX)
		return attach_transaction_refuse(t, ATTACH_BUSY,
		        "the daemon already has %d sessions, which is the most it may have: revoke "
		        "one",
		        SESSIONS_MAX);
	if (t->request->kind == ATTACH_SESSION || others < ATTACHMENTS_MAX ||
	        t->request->purpose == ATTACH_TO_CLAIM)
		return true;
	return attach_transaction_refuse(t, ATTACH_BUSY,
	        "the daemon already has %d sandboxes, which is the most it may have: detach one",
	        ATTACHMENTS_MAX);
}

bool attach_transaction_check_room(struct attach_transaction *t)
{
	const struct attachments *all = t->all;
	const struct attach_request *r = t->request;
	const struct attachment *other;
	struct attach_target target;

	if (all->stopping)
		return attach_transaction_refuse(t, ATTACH_BUSY, "the daemon is stopping");
	if (all->recovering)
		return attach_transaction_refuse(t, ATTACH_BUSY, ATTACH_RECOVERING);
	if (!check_count(t))
		return false;
	if (recording_count_orphans(all->supervisor) >= RECORDING_LEFT_MAX)
		return attach_transaction_refuse(t, ATTACH_BUSY,
		        "events of %d ended sandboxes are not in the audit log yet: no other "
		        "sandbox can start before they are",
		        RECORDING_LEFT_MAX);
	if (!fd_limit_left())
		return attach_transaction_refuse(t, ATTACH_BUSY,
		        "the daemon has too few descriptors left for another sandbox: it may have "
		        "%llu open files, and each sandbox takes about %d; detach one, or raise "
		        "its limit (LimitNOFILE= of its unit, or \"ulimit -Hn\" where it is "
		        "started by hand) and start it again",
		        (unsigned long long)fd_limit_get(), FD_LIMIT_EACH);
	if (r->name && r->name[0] && attachments_find(t->all, r->name))
		return attach_transaction_refuse(t, ATTACH_CONFLICT,
		        "sandbox %s already exists: detach it, or take another name", r->name);
	if (r->kind != ATTACH_INTERFACE)
		return true;
	target = attach_target_of_interface(t->interface);
	other = attachments_at(all, &target);
	return !other ||
	       attach_transaction_refuse(t, ATTACH_CONFLICT,
	               "interface %s already belongs to sandbox %s: detach that sandbox first",
	               t->interface, other->record.name);
}
