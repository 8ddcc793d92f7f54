/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading settings. All errors of one file are gathered into one text, so that the operator mends
 * them in one go. The configuration is read before the policy and both are read whole before
 * anything is started: a session that cannot be set up leaves nothing to undo.
 */
#include <errno.h>
#include <sys/socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/credential/mask.h"
#include "supervisor/local_file.h"
#include "supervisor/settings/sources.h"
#include "supervisor/settings/private.h"

#define HOST_FILE_MAX (1u << 20) /* bytes of resolv.conf and hosts that are looked at */

/* The diagnostics as diag_print() shows them, in memory. */
static char *diagnostics_text(const struct diag_list *diags)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	diag_print(diags, out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	while (n && text[n - 1] == '\n')
		text[--n] = 0;
	return text;
}

static int read_local(struct settings_opening *o)
{
	int fd = local_file_open(o->path), error;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0)
		o->stamp = stamp_of(&st, time(NULL));
	error = policy_read_open_file(fd, o->text, o->n, &o->facts);
	close(fd);
	return error;
}

static int read_now(void *context)
{
	struct settings_opening *o = context;

	if (o->given)
		return read_local(o);
	return o->files.read(o->files.context, o->path, o->text, o->n);
}

/* The operator's files may be closed to the user whom the operator lets run them: then they are
 * read all the same. */
static int read_as_user(struct settings_opening *o)
{
	int error = LOCAL_FILE_UNKNOWN;

	if (o->given && o->whose == SETTINGS_CALLERS)
		error = settings_files_get(o->given, o->path, o->text, o->n, &o->facts);
	if (error == LOCAL_FILE_UNKNOWN)
		error = identity_run(o->identity, read_now, o);
	if (error == LOCAL_FILE_UNKNOWN && o->whose == SETTINGS_CALLERS)
		o->remote = true;
	else if (error == LOCAL_FILE_UNKNOWN)
		o->config_remote = true;

	if (error != -EACCES || !o->identity->lends || o->identity->uid == geteuid())
		return error;
	o->lent = true;
	return read_now(o);
}

int settings_read(void *context, const char *path, char **text, size_t *n)
{
	struct settings_opening *o = context;

	o->path = path;
	o->text = text;
	o->n = n;
	o->stamp = (struct stamp){0};
	int error = read_as_user(o);
	if (!o->for_whom)
		return error;
	if (error)
		settings_forget_inputs(o->for_whom);
	else
		settings_remember(
		        o->for_whom, o->whose, path, slice_of(*text, *n), &o->facts, &o->stamp);
	return error;
}

/* A file that only root or the invoking user can read or write. */
static bool is_private(void *context)
{
	const struct settings_opening *o = context;
	uint32_t owner = o->facts.owner;

	return o->facts.closed && (owner == 0 || owner == o->identity->uid || owner == geteuid());
}

/* Diagnostics quote what they complain of. A user who may run this program as root, and not read
 * every file as root, would have any file read out that way. */
static void withhold(struct diag_list *diags, const char *path, const char *check)
{
	memset(diags, 0, sizeof *diags);
	diag_add(diags, path, 0, 0,
	        "cannot be used (or a file that belongs to it). What is wrong with it is not "
	        "shown, because you may not read it: ask whoever may to run '%s'",
	        check);
}

/* Why the bytes read (with one line's end taken off) cannot be a password, or NULL. */
static const char *password_objection(const uint8_t *p, size_t n, size_t room)
{
	if (n == 0)
		return "is empty";
	if (n > room)
		return "is too long for a password";
	for (size_t i = 0; i < n; i++)
		if (p[i] < 0x20 || p[i] == 0x7f)
			return "holds a control character or a second line";
	return NULL;
}

/* user:password, both from the proxy's URL. */
static int join_egress_pair(struct settings *s, struct diag_list *diags)
{
	struct slice password = secret_slice(&s->config.egress_password);
	size_t user = strlen(s->config.egress_user);
	const char *why = password_objection(
	        (const uint8_t *)password.p, password.n, CONFIG_EGRESS_PAIR_MAX - user - 1);
	int rc;

	if (!why && user + 1 + password.n < MASK_VALUE_MIN)
		why = "is too short together with its user";
	if (why) {
		diag_add(diags, "egress.proxy", 0, 0, "its password %s", why);
		return -EINVAL;
	}
	rc = secret_alloc(&s->egress_pair, user + 1 + password.n);
	if (rc < 0)
		return rc;
	memcpy(s->egress_pair.p, s->config.egress_user, user);
	s->egress_pair.p[user] = ':';
	memcpy(s->egress_pair.p + user + 1, password.p, password.n);
	s->egress_pair.n = user + 1 + password.n;
	secret_free(&s->config.egress_password);
	return 0;
}

/* user:password, of a file that the invoking user or root keeps from everybody else. */
static int read_egress_pair(
        struct settings *s, const struct identity *identity, bool wait, struct diag_list *diags)
{
	const char *path = s->config.egress_password_file, *why = NULL;
	size_t user = strlen(s->config.egress_user);
	char error[SOURCE_ERROR_MAX];
	struct secret *pair = &s->egress_pair;
	struct stat st;
	ssize_t n;

	if (!path[0])
		return s->config.egress_password.n ? join_egress_pair(s, diags) : 0;
	int fd = source_file_open(identity, path, wait, error);
	if (fd < 0) {
		diag_add(diags, "egress.password_file", 0, 0, "%s", error);
		return -EINVAL;
	}
	int rc = secret_alloc(pair, CONFIG_EGRESS_PAIR_MAX + 2);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	memcpy(pair->p, s->config.egress_user, user);
	pair->p[user++] = ':';
	n = read(fd, pair->p + user, pair->cap - user);
	if (n > 0 && pair->p[user + (size_t)n - 1] == '\n')
		n--;
	if (n < 0)
		why = "cannot be read";
	else if (fstat(fd, &st) < 0 || (st.st_mode & S_IROTH))
		why = "can be read by everybody: chmod o-r would mend that";
	else
		why = password_objection(pair->p + user, (size_t)n, CONFIG_EGRESS_PAIR_MAX - user);
	close(fd);
	if (!why && user + (size_t)n < MASK_VALUE_MIN)
		why = "is too short together with egress.user";
	if (why) {
		diag_add(diags, path, 0, 0, "egress.password_file %s", why);
		return -EINVAL;
	}
	pair->n = user + (size_t)n;
	return 0;
}

/* Tried here, in the namespace that the worker dials from. */
static int check_source(const struct ip *address, const struct config_place *place,
        const char *config_path, struct diag_list *diags)
{
	struct sockaddr_storage from;
	socklen_t n = ip_to_sockaddr(address, 0, &from);
	char text[IP_TEXT_MAX];
	int error = 0, fd;

	if (!address->family)
		return 0;
	fd = socket(from.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&from, n) < 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error == EADDRNOTAVAIL)
		diag_add(diags, config_path, place->line, place->column,
		        "egress.address %s: this host has no such address",
		        ip_format(address, text));
	else if (error)
		diag_add(diags, config_path, place->line, place->column,
		        "egress.address %s cannot be used: %s", ip_format(address, text),
		        strerror(error));
	return error ? -EINVAL : 0;
}

static int check_egress_address(
        const struct config *c, const char *config_path, struct diag_list *diags)
{
	int rc4 = check_source(&c->egress.address4, &c->egress_place4, config_path, diags);
	int rc6 = check_source(&c->egress.address6, &c->egress_place6, config_path, diags);

	return rc4 ? rc4 : rc6;
}

/* CONNECT carries TCP only. */
static int check_egress(const struct settings *s, const char *policy_path, struct diag_list *diags)
{
	uint16_t port;

	if (!s->config.egress.proxy_port || policy_udp_ports(&s->policy, &port, 1) == 0)
		return 0;
	diag_add(diags, policy_path, 0, 0,
	        "a udp:// rule cannot be served: the configuration sends everything through "
	        "egress.proxy, which carries TCP only");
	return -EINVAL;
}

/* One that cannot be remembered is not watched, which is no reason to refuse the policy. */
static void remember_file(void *context, const char *path)
{
	struct settings *s = context;
	char **files = realloc(s->files, (s->file_count + 1) * sizeof *files);

	if (!files)
		return;
	s->files = files;
	files[s->file_count] = strdup(path);
	if (files[s->file_count])
		s->file_count++;
}

/* The configuration is the invoking user's in a session, and the daemon's own else. */
const struct identity *settings_config_identity(const struct identity *caller)
{
	static struct identity own;

	own = (struct identity){.uid = geteuid(), .gid = getegid()};
	return caller->lends || caller->fixed ? caller : &own;
}

static void say_not_local(
        const struct settings_opening *opening, const char *path, struct diag_list *diags)
{
	if (!opening->config_remote)
		return;
	memset(diags, 0, sizeof *diags);
	diag_add(diags, path, 0, 0, SETTINGS_NOT_LOCAL);
}

int settings_load_config(const char *path, struct config *config, struct diag_list *diags)
{
	const struct identity own = {.uid = geteuid(), .gid = getegid()};
	struct settings_opening opening = {
	        .identity = &own, .whose = SETTINGS_OWN, .given = &settings_no_files};
	struct policy_reader reader = {
	        &opening, settings_read, policy_default_preset_dir(), is_private};
	int error = path[0] ? config_load(&reader, path, config, diags) : 0;

	say_not_local(&opening, path, diags);
	return error;
}

/* Who may not read it is not told what is wrong with it. */
static int load_config(struct settings *s, struct settings_opening *opening,
        struct policy_reader *reader, const char *path, struct diag_list *diags)
{
	const struct identity *caller = opening->identity;
	int error;

	if (!path[0])
		return 0;
	opening->identity = settings_config_identity(caller);
	opening->whose = SETTINGS_OWN;
	error = config_load(reader, path, &s->config, diags);
	say_not_local(opening, path, diags);
	if (error && opening->identity != caller && caller->uid != geteuid())
		opening->lent = true;
	opening->identity = caller;
	opening->whose = SETTINGS_CALLERS;
	return error;
}

/* Of the configuration's parts: its own faults are to be told from the policy's. */
static int of_config(int error)
{
	return error && error != -ENOMEM ? -ECANCELED : error;
}

/* For the operator's log, and for whoever asked for this. */
static int take_notes(struct settings *s, const struct diag_list *notes)
{
	FILE *out;
	size_t n;

	if (!notes->count)
		return 0;
	out = open_memstream(&s->notes, &n);
	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < notes->count; i++) {
		const struct diag *note = &notes->items[i];
		char place[DIAG_FILE_MAX + 32] = "";

		if (note->line)
			snprintf(place, sizeof place, "%s:%u:%u: ", note->file, note->line,
			        note->column);
		log_warn("%s%s", place, note->message);
		fprintf(out, "%s%s\n", place, note->message);
	}
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

static int load_files(struct settings *s, struct settings_opening *opening, const char *policy_path,
        const char *config_path, const struct policy_load_options *wanted, struct diag_list *diags)
{
	struct policy_reader reader = {
	        opening, settings_read, opening->files.preset_dir, is_private};
	struct policy_load_options options = *wanted;
	struct diag_list *notes = calloc(1, sizeof *notes);
	int error = notes ? 0 : -ENOMEM;

	options.notes = notes;
	options.each_file = remember_file;
	options.each_file_context = s;

	if (!error)
		error = of_config(load_config(s, opening, &reader, config_path, diags));
	if (!error)
		error = policy_load(
		        &reader, policy_path, &options, &s->image, &s->image_size, diags);
	if (!error)
		error = policy_open(&s->policy, s->image, s->image_size);
	if (!error)
		error = of_config(check_egress_address(&s->config, config_path, diags));
	if (!error)
		error = check_egress(s, policy_path, diags);
	if (!error)
		error = of_config(read_egress_pair(
		        s, settings_config_identity(opening->identity), !opening->given, diags));
	if (!error)
		error = take_notes(s, notes);
	free(notes);
	return error;
}

/* A file of the host's, as much as HOST_FILE_MAX. Missing or unreadable: empty, as the C library
 * takes it. */
struct slice settings_host_file(const char *path, char **memory, struct stamp *stamp)
{
	FILE *in = fopen(path, "re");
	size_t room = HOST_FILE_MAX, n = 0;
	struct stat st;

	*stamp = (struct stamp){0};
	if (in && fstat(fileno(in), &st) == 0 && S_ISREG(st.st_mode)) {
		*stamp = stamp_of(&st, time(NULL));
		if (st.st_size > 0 && st.st_size < HOST_FILE_MAX)
			room = (size_t)st.st_size + 1;
	}
	*memory = in ? malloc(room) : NULL;
	if (*memory)
		n = fread(*memory, 1, room, in);
	if (in)
		fclose(in);
	return slice_of(*memory ? *memory : "", n);
}

static struct slice read_host_file(struct settings *s, const char *path, char **memory)
{
	struct stamp stamp;
	struct slice text = settings_host_file(path, memory, &stamp);

	settings_remember(s, SETTINGS_HOSTS, path, text, &(struct policy_file_facts){0}, &stamp);
	return text;
}

static void find_servers(struct settings *s)
{
	char *memory;

	s->server_count = s->config.server_count;
	memcpy(s->servers, s->config.servers, sizeof s->servers);
	if (s->server_count)
		return;
	struct slice text = read_host_file(s, "/etc/resolv.conf", &memory);
	s->server_count = settings_parse_resolv(text, s->servers, CONFIG_SERVERS_MAX);
	free(memory);
	if (s->server_count == 0) { /* resolv.conf(5): the name server on the local machine */
		s->servers[0] = (struct config_server){{4, {127, 0, 0, 1}}, 53};
		s->server_count = 1;
	}
}

bool settings_host_asks_itself(void)
{
	struct config_server servers[CONFIG_SERVERS_MAX];
	bool own = false;
	struct stamp stamp;
	char *memory;
	struct slice text = settings_host_file("/etc/resolv.conf", &memory, &stamp);
	size_t count = settings_parse_resolv(text, servers, CONFIG_SERVERS_MAX);

	free(memory);
	for (size_t i = 0; i < count; i++)
		own = own || ip_classify(&servers[i].address) == IP_LOOPBACK;
	return own;
}

static int find_hosts(struct settings *s)
{
	char *memory;
	size_t own = s->config.host_count;

	struct config_host *shrunk, *hosts = calloc(CONFIG_HOSTS_MAX, sizeof *hosts);
	if (!hosts)
		return -ENOMEM;
	s->hosts = hosts;
	if (own)
		memcpy(s->hosts, s->config.hosts, own * sizeof *s->hosts);
	s->host_count = own;
	struct slice text = read_host_file(s, "/etc/hosts", &memory);
	if (!settings_parse_hosts(text, s->hosts, own, &s->host_count, CONFIG_HOSTS_MAX))
		log_warn("/etc/hosts has more than %d names: the rest is not used",
		        CONFIG_HOSTS_MAX);
	free(memory);
	shrunk = realloc(hosts, (s->host_count + 1) * sizeof *hosts);
	if (shrunk)
		s->hosts = shrunk;
	return 0;
}

static int load(struct settings *s, struct settings_opening *opening, const char *policy_path,
        const char *config_path, const struct policy_load_options *options, struct diag_list *diags)
{
	int result = load_files(s, opening, policy_path, config_path, options, diags);

	if (!result) {
		find_servers(s);
		result = find_hosts(s);
	}
	if (result && diags->count && opening->lent && result == -ECANCELED)
		withhold(diags, config_path, "vethguardd --check-config");
	else if (result && diags->count && opening->lent)
		withhold(diags, policy_path, "vethguard policy check");
	return result;
}

static struct settings *load_new(const struct identity *identity, const char *policy_path,
        const char *config_path, const struct policy_load_options *options,
        const struct settings_files *files, bool remembers, char **error)
{
	struct diag_list *diags = calloc(1, sizeof *diags);
	struct settings *s = calloc(1, sizeof *s);
	struct settings_opening opening = {.identity = identity,
	        .files = policy_reader_files(policy_default_preset_dir()),
	        .for_whom = remembers ? s : NULL,
	        .given = files};

	opening.files.context = &opening.facts;
	if (!diags || !s) {
		free(diags);
		free(s);
		errno = ENOMEM;
		return NULL;
	}
	s->refs = 1;
	s->image_file = -1;
	s->remembers = remembers;
	config_init(&s->config);
	int result = load(s, &opening, policy_path, config_path, options, diags);
	if (result) {
		if (opening.remote && result != -ENOMEM)
			result =
			        LOCAL_FILE_UNKNOWN; /* what was found out so far is worth nothing */
		else if (diags->count)
			*error = diagnostics_text(diags);
		settings_put(s);
		s = NULL;
	}
	free(diags);
	errno = -result;
	return s;
}

struct settings *settings_load(struct settings **registry, const struct identity *identity,
        const char *policy_path, const char *config_path, const struct policy_load_options *options,
        const struct settings_files *files, char **error)
{
	struct settings *s = NULL;

	*error = NULL;
	if (registry)
		s = settings_find(*registry, identity, policy_path, config_path, options, files);
	if (s)
		return s;
	s = load_new(identity, policy_path, config_path, options, files, registry != NULL, error);
	if (s && registry)
		settings_offer(registry, s, identity, policy_path, config_path, options);
	return s;
}

void settings_put(struct settings *s)
{
	if (!s || --s->refs)
		return;
	if (s->registry)
		HASH_DEL(*s->registry, s);
	settings_forget_inputs(s);
	free(s->key);
	config_fini(&s->config);
	secret_free(&s->egress_pair);
	if (s->image_file >= 0)
		close(s->image_file);
	free(s->image);
	free(s->notes);
	free(s->hosts);
	for (size_t i = 0; i < s->file_count; i++)
		free(s->files[i]);
	free(s->files);
	free(s);
}
