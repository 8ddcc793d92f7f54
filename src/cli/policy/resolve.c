/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: names are looked up among the static hosts first. For the others, some at a
 * time, the name servers are asked that a sandbox's proxy would ask, and nobody else. Each name may
 * take the configuration's timeouts.resolve, all together RESOLVE_TOTAL_MS; a name without an
 * answer by then counts as not resolved. If an egress proxy resolves names, nobody is asked here.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/policy/resolve.h"
#include "vethguard/loop/own_address.h"
#include "vethguard/policy/expose.h"
#include "vethguard/policy/host_files.h"

#define AT_A_TIME 16

struct asking {
	struct resolve *resolve;
	struct loop *loop;
	struct resolver *resolver;
	struct loop_timer patience;
	size_t next, out; /* the next name; number of open questions */
	struct question_of {
		struct asking *asking;
		struct resolve_name *name; /* NULL: free */
		struct resolver_wait wait;
	} questions[AT_A_TIME];
};

/* --- what is known without asking --- */

static char *read_host_file(const char *path, struct slice *text)
{
	struct policy_reader reader = policy_reader_files(NULL);
	char *memory = NULL;

	*text = SLICE("");
	if (reader.read(NULL, path, &memory, &text->n) != 0)
		return NULL;
	text->p = memory;
	return memory;
}

static bool find_hosts(struct resolve *r)
{
	struct slice text;
	char *memory;

	r->hosts = calloc(CONFIG_HOSTS_MAX, sizeof(*r->hosts));
	if (!r->hosts)
		return false;
	r->host_count = r->config.host_count;
	if (r->host_count > 0)
		memcpy(r->hosts, r->config.hosts, r->host_count * sizeof(*r->hosts));
	memory = read_host_file("/etc/hosts", &text);
	host_files_parse_hosts(
	        text, r->hosts, r->config.host_count, &r->host_count, CONFIG_HOSTS_MAX);
	free(memory);
	return true;
}

static void find_servers(struct resolve *r)
{
	struct slice text;
	char *memory;

	r->server_count = r->config.server_count;
	memcpy(r->servers, r->config.servers, sizeof(r->servers));
	if (r->server_count > 0)
		return;
	memory = read_host_file("/etc/resolv.conf", &text);
	r->server_count = host_files_parse_resolv(text, r->servers, CONFIG_SERVERS_MAX);
	free(memory);
	if (r->server_count == 0) {
		r->servers[0] = (struct config_server){{4, {127, 0, 0, 1}}, CONFIG_SERVER_PORT};
		r->server_count = 1;
	}
}

bool resolve_open(struct resolve *r, const char *config_path, bool ask)
{
	static struct diag_list diags;
	struct policy_file_facts facts = {0};
	struct policy_reader reader = policy_reader_private_files(NULL, &facts);

	memset(r, 0, sizeof(*r));
	r->config_path = config_path;
	r->ask = ask;
	config_init(&r->config);
	diags.count = diags.dropped = 0;
	if (config_path && config_load(&reader, config_path, &r->config, &diags) != 0) {
		diag_print(&diags, stderr);
		return false;
	}
	r->names = calloc(RESOLVE_NAMES_MAX, sizeof(*r->names));
	if (!r->names || !find_hosts(r)) {
		fputs("vethguard: error: not enough memory\n", stderr);
		return false;
	}
	find_servers(r);
	return true;
}

void resolve_close(struct resolve *r)
{
	config_fini(&r->config);
	free(r->hosts);
	free(r->names);
	memset(r, 0, sizeof(*r));
}

void resolve_clear(struct resolve *r)
{
	r->count = r->dropped = 0;
}

void resolve_add(void *context, const struct policy_host_place *place)
{
	struct resolve *r = context;
	struct resolve_name *name;

	for (size_t i = 0; i < r->count; i++)
		if (slice_equals(slice_from_string(r->names[i].host), place->host))
			return;
	if (r->count == RESOLVE_NAMES_MAX || place->host.n > POLICY_HOST_MAX) {
		r->dropped++;
		return;
	}
	name = &r->names[r->count++];
	memset(name, 0, sizeof(*name));
	memcpy(name->host, place->host.p, place->host.n);
	name->scheme = place->scheme;
	name->port = place->port;
	slice_escape_controls(slice_from_string(place->file), name->file, sizeof(name->file));
	name->line = place->line;
	name->column = place->column;
	/* The name of another sandbox is never looked up. */
	name->state = slice_ends_with(place->host, SLICE(POLICY_SANDBOX_SUFFIX))
	                      ? RESOLVE_PASSES
	                      : RESOLVE_NOT_ASKED;
}

/* --- judging --- */

/* Judges like the proxy (authorize_address() and dial_may_connect()) if no rule names the address:
 * the rule that allows the request names the host. */
static void decide(const struct resolve *r, struct resolve_address *a)
{
	const struct ip_prefix *permit = r->config.permit;
	size_t count = r->config.permit_count;

	a->own = own_address(&a->ip);
	a->refused =
	        (ip_classify(&a->ip) != IP_PUBLIC && !ip_networks_permit(permit, count, &a->ip)) ||
	        (a->own && !ip_networks_name(permit, count, &a->ip));
}

static void take(struct resolve *r, struct resolve_name *name, const struct ip *ip)
{
	struct resolve_address *a = &name->addresses[name->count];

	if (name->count == RESOLVER_ADDRESSES_MAX)
		return;
	a->ip = *ip;
	decide(r, a);
	name->count++;
}

static void conclude(struct resolve_name *name)
{
	size_t refused = 0;

	for (size_t i = 0; i < name->count; i++)
		refused += name->addresses[i].refused;
	name->state = name->count == 0        ? RESOLVE_NOWHERE
	              : refused == 0          ? RESOLVE_PASSES
	              : refused < name->count ? RESOLVE_PARTLY
	                                      : RESOLVE_REFUSED;
}

/* True if the name is known without asking. */
static bool look_up(struct resolve *r, struct resolve_name *name)
{
	for (size_t i = 0; i < r->host_count; i++)
		if (strcmp(r->hosts[i].name, name->host) == 0)
			take(r, name, &r->hosts[i].address);
	if (name->count > 0)
		conclude(name);
	return name->count > 0;
}

/* --- asking --- */

static void note(struct resolve *r, struct resolve_name *name, const struct resolver_answer *answer)
{
	for (size_t i = 0; i < answer->count; i++)
		take(r, name, &answer->addresses[i]);
	name->error = answer->error;
	conclude(name);
}

static void go_on(struct asking *a);

static void on_answer(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	struct question_of *q = container_of(wait, struct question_of, wait);

	note(q->asking->resolve, q->name, answer);
	q->name = NULL;
	q->asking->out--;
	go_on(q->asking);
}

static void ask(struct asking *a, struct resolve_name *name)
{
	const struct resolver_answer *answer;
	struct question_of *q = a->questions;

	while (q->name)
		q++;
	q->wait = (struct resolver_wait){.on_answer = on_answer};
	answer = resolver_get(a->resolver, slice_from_string(name->host), &q->wait);
	if (answer) {
		note(a->resolve, name, answer);
		return;
	}
	q->name = name;
	a->out++;
}

static void go_on(struct asking *a)
{
	struct resolve *r = a->resolve;

	while (a->next < r->count && a->out < AT_A_TIME) {
		struct resolve_name *name = &r->names[a->next++];

		if (name->state == RESOLVE_NOT_ASKED)
			ask(a, name);
	}
	if (a->out == 0 && a->next == r->count)
		loop_stop(a->loop);
}

static void on_too_late(struct loop_timer *timer)
{
	loop_stop(container_of(timer, struct asking, patience)->loop);
}

/* Ends the names without an answer when the time is over. */
static void give_up(struct asking *a)
{
	for (size_t i = 0; i < AT_A_TIME; i++)
		resolver_wait_cancel(&a->questions[i].wait);
	for (size_t i = 0; i < a->resolve->count; i++)
		if (a->resolve->names[i].state == RESOLVE_NOT_ASKED) {
			a->resolve->names[i].state = RESOLVE_NOWHERE;
			a->resolve->names[i].error = "the time for all names of the policy is over";
		}
}

static bool ask_all(struct resolve *r)
{
	struct asking *a = calloc(1, sizeof(*a));
	bool good = a && (a->loop = loop_new());

	if (good) {
		a->resolve = r;
		for (size_t i = 0; i < AT_A_TIME; i++)
			a->questions[i].asking = a;
		a->resolver = resolver_new(a->loop, r->servers, r->server_count, NULL, 0,
		        r->config.timeouts.resolve_ms);
		good = a->resolver && loop_timer_open(a->loop, &a->patience, on_too_late) == 0;
	}
	if (good) {
		loop_timer_set(&a->patience, RESOLVE_TOTAL_MS);
		go_on(a);
		good = (a->out == 0 && a->next == r->count) || loop_run(a->loop) == 0;
		give_up(a);
	}
	if (a) {
		loop_timer_close(&a->patience);
		if (a->resolver)
			resolver_free(a->resolver);
		loop_free(a->loop);
	}
	free(a);
	return good;
}

/* A name that no request reaches needs no address. */
static void drop_refused(struct resolve *r, const struct policy *policy)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->count; i++) {
		struct resolve_name *name = &r->names[i];
		struct policy_request request = {.scheme = name->scheme,
		        .host = slice_from_string(name->host),
		        .port = name->port};
		struct policy_decision decision;

		policy_decide(policy, &request, &decision);
		if (decision.verdict == POLICY_ALLOW)
			r->names[kept++] = *name;
	}
	r->count = kept;
}

bool resolve_names(struct resolve *r, const struct policy *policy)
{
	const struct config_egress *egress = &r->config.egress;
	size_t unknown = 0;

	if (policy)
		drop_refused(r, policy);
	if (egress->proxy_port && !egress->resolve_local)
		return true;
	for (size_t i = 0; i < r->count; i++)
		unknown += !look_up(r, &r->names[i]);
	if (!r->ask || unknown == 0 || ask_all(r))
		return true;
	fputs("vethguard: error: names cannot be resolved: not enough memory or descriptors\n",
	        stderr);
	return false;
}

bool resolve_fails(const struct resolve_name *name)
{
	return name->state == RESOLVE_REFUSED || name->state == RESOLVE_NOWHERE;
}
