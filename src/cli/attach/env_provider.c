/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vethguard env --format PROVIDER`: the options with which a provider's SDK makes a sandbox whose
 * only way out is the gateway. The field names are those of the TypeScript SDKs that
 * docs/gateway.md names. An option that an SDK has no field for is not printed.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/attach/env.h"
#include "cli/commands.h"
#include "vethguard/adapter/trust_env.h"
#include "vethguard/base/ip.h"
#include "vethguard/base/secret.h"

#define PLACE_MAX 320 /* HOST:PORT */
#define URL_MAX (ENV_TOKEN_MAX + PLACE_MAX + 32)
#define USER "session"
#define TOKEN_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
#define NO_SESSION "this sandbox is not a session: 'vethguard session create' makes one"
#define NO_TLS                                                                                    \
	"the gateway has no address with TLS that others know: the configuration needs gateway: " \
	"listen and name"
#define NO_PLAIN                                                                                 \
	"the gateway has no address for SOCKS5 without TLS that others know: the configuration " \
	"needs gateway: listen_plain, plain_anywhere and name"

/* Where the gateway is. */
struct place {
	char host[PLACE_MAX]; /* a name, or an address without brackets */
	uint64_t port;
	struct ip address; /* family 0: a name */
	const char *text;  /* as the daemon's answer has it */
};

/* Returns false if the daemon's answer has no gateway of this kind. */
static bool find(const json_t *answer, const char *kind, struct place *out)
{
	const char *text = control_text(json_object_get(answer, "gateway"), kind);
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	*out = (struct place){.text = text};
	if (!colon || n >= sizeof(out->host) ||
	        !slice_to_u64(slice_from_string(colon + 1), UINT16_MAX, &out->port))
		return false;
	if (text[0] == '[' && n > 2)
		snprintf(out->host, sizeof(out->host), "%.*s", (int)n - 2, text + 1);
	else
		snprintf(out->host, sizeof(out->host), "%.*s", (int)n, text);
	if (!ip_parse(slice_from_string(out->host), &out->address))
		out->address.family = 0;
	return true;
}

static bool complain(const char *option, const char *value, const char *what)
{
	fprintf(stderr, "vethguard: error: --%s %s: %s\n", option, value, what);
	return false;
}

bool env_token_read(const char *path, const json_t *answer, char out[ENV_TOKEN_MAX + 1])
{
	const char *why = NULL;
	struct place place;
	size_t n = 0;
	FILE *in;

	if (!json_is_object(json_object_get(answer, "gateway")))
		return complain("token-file", path, NO_SESSION);
	if (!find(answer, "tls", &place) && !find(answer, "plain", &place))
		return complain("token-file", path, NO_TLS);
	in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	if (in)
		n = fread(out, 1, ENV_TOKEN_MAX, in);
	if (!in || ferror(in))
		why = strerror(errno);
	else if (fgetc(in) != EOF)
		why = "it is longer than a token";
	if (in && in != stdin)
		fclose(in);
	while (n && (out[n - 1] == '\n' || out[n - 1] == '\r'))
		n--;
	out[n] = 0;
	/* The token is put into URLs, lines and quotes without escapes. */
	if (!why && (n == 0 || strspn(out, TOKEN_BYTES) != n))
		why = "it holds no token";
	return !why || complain("token-file", path, why);
}

static void set(struct environment *env, const char *name, const char *value)
{
	environment_set(env, slice_from_string(name), slice_from_string(value));
}

void env_set_gateway(struct environment *env, const json_t *answer, const char *token)
{
	struct place place;
	char url[URL_MAX], direct[PLACE_MAX + 64];
	bool tls = find(answer, "tls", &place);

	if (!tls && !find(answer, "plain", &place))
		return;
	snprintf(
	        url, sizeof(url), "%s://" USER ":%s@%s", tls ? "https" : "http", token, place.text);
	trust_env_set_proxy(env, url);
	/* The gateway itself is not reached through the gateway. */
	snprintf(direct, sizeof(direct), "localhost,127.0.0.1,::1,%s", place.host);
	set(env, "NO_PROXY", direct);
	set(env, "no_proxy", direct);
	snprintf(url, sizeof(url), "%s://%s/s/%s", tls ? "https" : "http", place.text, token);
	set(env, "VETHGUARD_BASE_URL", url);
	secret_wipe(url, sizeof(url));
}

static json_t *object_of(const struct environment *env)
{
	json_t *object = json_object();

	for (char **var = env->vars; var && *var; var++) {
		const char *equals = strchr(*var, '=');

		json_object_setn_new(
		        object, *var, (size_t)(equals - *var), json_string(equals + 1));
	}
	return object;
}

/* Returns the network of this one address; NULL if the place is a name or an IPv6 address. */
static json_t *network_of(const struct place *place)
{
	return place->address.family == 4 ? json_sprintf("%s/32", place->host) : NULL;
}

/* E2B sends TCP through a SOCKS5 proxy, without TLS. */
static json_t *e2b(const struct place *place, json_t *env, const char *name, const char *token)
{
	(void)name;
	return json_pack("{s:{s:{s:s, s:s, s:s}}, s:o}", "network", "egressProxy", "address",
	        place->text, "username", USER, "password", token, "envs", env);
}

static json_t *modal(const struct place *place, json_t *env, const char *name, const char *token)
{
	json_t *network = network_of(place);

	(void)name, (void)token;
	return network ? json_pack("{s:[o], s:o}", "outboundCidrAllowlist", network, "env", env)
	               : json_pack("{s:[s], s:o}", "outboundDomainAllowlist", place->host, "env",
	                         env);
}

static json_t *daytona(const struct place *place, json_t *env, const char *name, const char *token)
{
	json_t *network = network_of(place);

	(void)name, (void)token;
	return network ? json_pack("{s:o, s:o}", "networkAllowList", network, "envVars", env)
	               : json_pack("{s:s, s:o}", "domainAllowList", place->host, "envVars", env);
}

static json_t *deno(const struct place *place, json_t *env, const char *name, const char *token)
{
	(void)name, (void)token;
	return json_pack("{s:[s], s:o}", "allowNet", place->text, "env", env);
}

/* Two SDK calls: the policy's id goes into launch_parameters.network_policy_id of the second. */
static json_t *runloop(const struct place *place, json_t *env, const char *name, const char *token)
{
	json_t *network = network_of(place), *policy;

	(void)token;
	policy = network ? json_pack("{s:o, s:[{s:o, s:[{s:I}]}]}", "name",
	                           json_sprintf("vethguard-%s", name), "allowed_cidrs", "cidr",
	                           network, "ports", "port", (json_int_t)place->port)
	                 : json_pack("{s:o, s:[s]}", "name", json_sprintf("vethguard-%s", name),
	                           "allowed_hostnames", place->host);
	return json_pack(
	        "{s:o, s:{s:o}}", "network_policy", policy, "devbox", "environment_variables", env);
}

static json_t *langsmith(
        const struct place *place, json_t *env, const char *name, const char *token)
{
	(void)name, (void)token;
	return json_pack("{s:{s:{s:[s]}}, s:{s:o}}", "proxyConfig", "access_control", "allow_list",
	        place->host, "runConfig", "env_vars", env);
}

/* OpenAI's sandbox clients have no field for an egress filter: the filter is set at the provider
 * that makes the sandbox. */
static json_t *openai_agents(
        const struct place *place, json_t *env, const char *name, const char *token)
{
	(void)place, (void)name, (void)token;
	return json_pack("{s:o}", "env", env);
}

static const struct provider {
	const char *name;
	bool leads;       /* the provider sends all traffic: programs inside need no proxy */
	const char *kind; /* which of the gateway's places it uses */
	/* Takes env. */
	json_t *(*make)(
	        const struct place *place, json_t *env, const char *name, const char *token);
} providers[] = {
        {"e2b", true, "plain", e2b},
        {"modal", false, "tls", modal},
        {"daytona", false, "tls", daytona},
        {"deno", false, "tls", deno},
        {"runloop", false, "tls", runloop},
        {"langsmith", false, "tls", langsmith},
        {"openai-agents", false, "tls", openai_agents},
};

static const struct provider *provider_of(const char *format)
{
	for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++)
		if (strcmp(format, providers[i].name) == 0)
			return &providers[i];
	return NULL;
}

bool env_provider_is_known(const char *format)
{
	return provider_of(format);
}

bool env_provider_leads(const char *format)
{
	const struct provider *provider = provider_of(format);

	return provider && provider->leads;
}

int env_provider_print(
        const char *format, const struct environment *env, const json_t *answer, const char *token)
{
	const struct provider *provider = provider_of(format);
	struct place place;
	json_t *options;

	const char *why = NULL;

	if (!json_is_object(json_object_get(answer, "gateway")))
		why = NO_SESSION;
	else if (!token[0])
		why = "the session's token is needed: give --token-file";
	else if (!find(answer, provider->kind, &place) ||
	         (place.address.family && ip_classify(&place.address) == IP_LOOPBACK))
		why = provider->leads ? NO_PLAIN : NO_TLS;
	if (why) {
		complain("format", format, why);
		return CLI_USAGE;
	}
	options = provider->make(&place, object_of(env), control_text(answer, "name"), token);
	if (!options) {
		complain("format", format, "no memory");
		return 1;
	}
	control_print_json(options);
	json_decref(options);
	return 0;
}
