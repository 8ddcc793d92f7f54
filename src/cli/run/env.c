/* SPDX-License-Identifier: Apache-2.0 */
/* The guarded command's environment; see run/env.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/guest/mounts.h"
#include "cli/run/env.h"
#include "cli/run/secrets.h"
#include "vethguard/adapter/trust_env.h"
#include "vethguard/base/log.h"
#include "vethguard/tls/bundle.h"

extern char **environ;

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static void set(struct environment *env, const char *name, const char *value)
{
	environment_set(env, slice_from_string(name), slice_from_string(value));
}

static void add_proxy(struct environment *env, bool wanted, const struct message_run_ready *ready)
{
	char url[64], address[IP_TEXT_MAX];

	trust_env_unset_proxy(env);
	if (!wanted)
		return;
	snprintf(url, sizeof(url), "http://%s:%u", ip_format(&ready->gate4, address),
	        (unsigned)ready->proxy_port);
	trust_env_set_proxy(env, url);
}

static void add_user(struct environment *env, const struct run_user *user)
{
	set(env, "HOME", user->home);
	set(env, "USER", user->name);
	set(env, "LOGNAME", user->name);
	set(env, "SHELL", user->shell);
	if (!environment_get(env, "PATH"))
		set(env, "PATH", default_path);
}

/* Uses what exists: the CA's own file is in the directory, a bundle may be anywhere, and each
 * stands in for the other. If neither exists, the variables stay unchanged. */
static void add_trust(struct environment *env)
{
	bool directory = access(TRUST_DIRECTORY, F_OK) == 0;
	const char *ca = directory ? TRUST_CA : bundle_system_path(),
	           *bundle = bundle_system_path();
	const struct trust_places places = {.bundle = bundle ? bundle : ca,
	        .directory = directory ? TRUST_DIRECTORY : NULL,
	        .ca = ca};

	trust_env_set(env, &places);
}

static bool is_wiped(const struct run_supervisor *supervisor, struct slice name)
{
	for (size_t i = 0; i < supervisor->wiped.count; i++)
		if (slice_equals(supervisor->wiped.names[i], name))
			return true;
	return false;
}

/* A user who passes a key by hand has missed that the policy provides it. */
static void warn_of_placeholder(
        struct slice name, const char *value, const struct message_run_ready *ready)
{
	for (size_t i = 0; i < ready->env_count; i++)
		if (slice_equals(ready->env[i].name, name) &&
		        !slice_equals(ready->env[i].value, slice_from_string(value)))
			log_warn("--env %.*s: the policy has the placeholder of a credential for "
			         "this variable; the command gets the value given here instead, "
			         "and can read it",
			        SLICE_ARG(name));
}

/* NAME=VALUE sets a variable; NAME passes on vethguard's own, unless it holds a credential, which
 * vethguard may not pass on. */
static void add_option(struct environment *env, const char *text,
        const struct run_supervisor *supervisor, const struct message_run_ready *ready)
{
	const char *equals = strchr(text, '=');
	struct slice name = slice_of(text, equals ? (size_t)(equals - text) : strlen(text));
	const char *own;

	if (equals) {
		warn_of_placeholder(name, equals + 1, ready);
		environment_set(env, name, slice_from_string(equals + 1));
		return;
	}
	own = environment_own(name);
	if (is_wiped(supervisor, name))
		log_warn("--env %s: the policy reads a credential from this variable; the sandbox "
		         "does not get it",
		        text);
	else if (own) {
		warn_of_placeholder(name, own, ready);
		environment_set(env, name, slice_from_string(own));
	} else
		log_warn("--env %s: no such variable is set here, so the command has none; to set "
		         "it, write --env %s=VALUE",
		        text, text);
}

/* --clean-env, and the variables that --keep-env keeps. */
static void copy_clean(struct environment *env, const struct run_options *options)
{
	environment_copy_basic(env, environ);
	for (size_t i = 0; i < options->keep_count; i++) {
		const char *own = environment_own(slice_from_string(options->keep[i]));

		if (own)
			set(env, options->keep[i], own);
	}
}

int run_env_build(struct environment *env, const struct run_options *options,
        const struct privilege *privilege, const struct run_user *user,
        const struct run_supervisor *supervisor, const struct message_run_ready *ready)
{
	environment_init(env);
	if (options->clean_env)
		copy_clean(env, options);
	else
		environment_copy(env, environ);
	for (size_t i = 0; i < supervisor->wiped.count; i++)
		environment_unset(env, supervisor->wiped.names[i]);
	/* The invoking user keeps its own settings; another user does not inherit them. */
	if (options->user || (!privilege->rootless && getuid() != user->uid) ||
	        !environment_get(env, "HOME"))
		add_user(env, user);
	add_trust(env);
	add_proxy(env, options->proxy_env, ready);
	for (size_t i = 0; i < ready->env_count; i++)
		environment_set(env, ready->env[i].name, ready->env[i].value);
	for (size_t i = 0; i < options->env_count; i++)
		add_option(env, options->env[i], supervisor, ready);
	if (env->failed)
		return -ENOMEM;
	run_secrets_tell(env, options, ready);
	return 0;
}
