/* SPDX-License-Identifier: Apache-2.0 */
/* The guarded command's environment; see run_env.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mounts.h"
#include "run_env.h"
#include "vethguard/base/log.h"
#include "vethguard/tls/bundle.h"

extern char **environ;

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

enum trust_place { BUNDLE, DIRECTORY, CA };

/* Programs with a trust store of their own, and the variable that turns each to the system's. */
static const struct {
	const char *name;
	enum trust_place place;
} trust_variables[] = {
        {"SSL_CERT_FILE", BUNDLE},
        {"SSL_CERT_DIR", DIRECTORY},
        {"CURL_CA_BUNDLE", BUNDLE},
        {"REQUESTS_CA_BUNDLE", BUNDLE},
        {"PIP_CERT", BUNDLE},
        {"GIT_SSL_CAINFO", BUNDLE},
        {"NODE_EXTRA_CA_CERTS", CA},
        {"npm_config_cafile", BUNDLE},
        {"AWS_CA_BUNDLE", BUNDLE},
        {"CARGO_HTTP_CAINFO", BUNDLE},
        {"DENO_CERT", CA},
        {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", BUNDLE},
};

static void set(struct environment *env, const char *name, const char *value)
{
	environment_set(env, slice_from_string(name), slice_from_string(value));
}

/* Lower case last: a proxy of the invoking environment would otherwise lead a client to an address
 * that is not there. */
static const char *const proxy_names[] = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy",
        "https_proxy", "all_proxy", "NO_PROXY", "no_proxy"};

static void add_proxy(
        struct environment *env, bool wanted, const struct message_session_ready *ready)
{
	static const char *const set_names[] = {
	        "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"};
	char url[64], address[IP_TEXT_MAX];

	for (size_t i = 0; i < sizeof(proxy_names) / sizeof(proxy_names[0]); i++)
		environment_unset(env, slice_from_string(proxy_names[i]));
	if (!wanted)
		return;
	snprintf(url, sizeof(url), "http://%s:%u", ip_format(&ready->gate4, address),
	        (unsigned)ready->proxy_port);
	for (size_t i = 0; i < sizeof(set_names) / sizeof(set_names[0]); i++)
		set(env, set_names[i], url);
	set(env, "NO_PROXY", "localhost,127.0.0.1,::1");
	set(env, "no_proxy", "localhost,127.0.0.1,::1");
}

static void add_user(struct environment *env, const struct run_user *user)
{
	set(env, "HOME", user->home);
	set(env, "USER", user->name);
	set(env, "LOGNAME", user->name);
	set(env, "SHELL", user->shell);
	if (environment_get(env, "PATH") == NULL)
		set(env, "PATH", default_path);
}

/* What there is: the CA's own file lies in the directory, a bundle may be anywhere, each stands in
 * for the other. Without any the variables stay what they were. */
static void add_trust(struct environment *env)
{
	bool directory = access(TRUST_DIRECTORY, F_OK) == 0;
	const char *ca = directory ? TRUST_CA : bundle_system_path(),
	           *bundle = bundle_system_path();
	const char *values[] = {[BUNDLE] = bundle ? bundle : ca,
	        [DIRECTORY] = directory ? TRUST_DIRECTORY : NULL,
	        [CA] = ca};

	for (size_t i = 0; i < sizeof(trust_variables) / sizeof(trust_variables[0]); i++)
		if (values[trust_variables[i].place] != NULL)
			set(env, trust_variables[i].name, values[trust_variables[i].place]);
}

static bool is_wiped(const struct run_session *session, struct slice name)
{
	for (size_t i = 0; i < session->wiped.count; i++)
		if (slice_equals(session->wiped.names[i], name))
			return true;
	return false;
}

/* NAME=VALUE sets; NAME passes on our own, unless that is a credential, which is not ours to pass.
 */
static void add_option(struct environment *env, const char *text, const struct run_session *session)
{
	const char *equals = strchr(text, '=');
	struct slice name = slice_of(text, equals ? (size_t)(equals - text) : strlen(text));
	const char *own;

	if (equals != NULL) {
		environment_set(env, name, slice_from_string(equals + 1));
		return;
	}
	own = environment_own(name);
	if (is_wiped(session, name))
		log_warn("--env %s: the policy reads a credential from this variable; the sandbox "
		         "does not get it",
		        text);
	else if (own != NULL)
		environment_set(env, name, slice_from_string(own));
}

int run_env_build(struct environment *env, const struct run_options *options,
        const struct privilege *privilege, const struct run_user *user,
        const struct run_session *session, const struct message_session_ready *ready)
{
	environment_init(env);
	if (options->no_env)
		environment_copy_basic(env, environ);
	else
		environment_copy(env, environ);
	for (size_t i = 0; i < session->wiped.count; i++)
		environment_unset(env, session->wiped.names[i]);
	/* The invoking user keeps what it set itself; another user does not inherit that. */
	if (options->user != NULL || (!privilege->rootless && getuid() != user->uid) ||
	        environment_get(env, "HOME") == NULL)
		add_user(env, user);
	add_trust(env);
	add_proxy(env, options->proxy_env, ready);
	for (size_t i = 0; i < ready->env_count; i++)
		environment_set(env, ready->env[i].name, ready->env[i].value);
	for (size_t i = 0; i < options->env_count; i++)
		add_option(env, options->env[i], session);
	return env->failed ? -ENOMEM : 0;
}
