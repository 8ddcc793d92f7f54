/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vethguard env`: prints what a program inside an attached sandbox needs in its environment: the
 * places of the CA, as `vethguard run` sets them, the placeholders of credentials, and optionally
 * the proxy.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/attach/env.h"
#include "vethguard/adapter/trust_env.h"
#include "vethguard/base/secret.h"

#define BUNDLE_INSIDE "/etc/ssl/certs/ca-certificates.crt"
#define CA_INSIDE "/etc/ssl/certs/vethguard.pem"

struct env_options {
	struct control_line line;
	const char *format, *bundle, *ca, *token_file;
	bool proxy;
	char token[ENV_TOKEN_MAX + 1]; /* empty: none was given; wiped at the end */
};

static const struct option_spec specs[] = {
        {"format", 'f', "FORMAT",
                "shell: for eval (the default); docker: for its\n"
                "option --env-file; json; pem: the CA alone; for a\n"
                "session also e2b, modal, daytona, deno, runloop,\n"
                "langsmith, openai-agents: what their SDKs take"},
        {"token-file", 0, "FILE", "file with a session's token, for the proxy;\n-: standard input"},
        {"proxy-env", 0, NULL, "HTTP_PROXY, HTTPS_PROXY and their lower-case forms too"},
        {"ca-bundle", 0, "PATH",
                "path inside the sandbox of a bundle with the CA;\n"
                "default: " BUNDLE_INSIDE},
        {"ca", 0, "PATH", "path inside the sandbox of the CA alone; default:\n" CA_INSIDE},
        CONTROL_SPEC_SOCKET,
        CONTROL_SPEC_JSON,
        CONTROL_SPEC_HELP,
        {NULL, 0, NULL, NULL},
};

static void help(void)
{
	fputs("Usage: vethguard env NAME [OPTIONS]\n\n"
	      "Prints what to set inside an attached sandbox: where programs find the CA, "
	      "and\nplaceholders for credentials. 'attach --container' has installed the CA; "
	      "elsewhere\ninstall it yourself (--format pem).\n\nOptions:\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  vethguard env agent --format docker > agent.env\n"
	      "  docker exec --env-file agent.env agent my-agent\n"
	      "  eval \"$(vethguard env build-7)\"\n"
	      "  vethguard env agent-7 --format deno --token-file token > options.json\n"
	      "  vethguard env vm-1 --format pem > /mnt/vm/usr/local/share/ca-certificates/"
	      "vethguard.crt\n\n"
	      "Exit status: 0 done; 1 the daemon refused; 2 wrong usage; 3 the daemon cannot be\n"
	      "reached.\n",
	        stdout);
}

static bool take(void *context, const char *option, const char *value)
{
	struct env_options *o = context;

	if (strcmp(option, "format") == 0)
		o->format = value;
	else if (strcmp(option, "ca-bundle") == 0)
		o->bundle = value;
	else if (strcmp(option, "ca") == 0)
		o->ca = value;
	else if (strcmp(option, "token-file") == 0)
		o->token_file = value;
	else
		o->proxy = true;
	return true;
}

static void set(struct environment *env, const char *name, const char *value)
{
	environment_set(env, slice_from_string(name), slice_from_string(value));
}

static void fill(struct environment *env, const struct env_options *o, const json_t *answer)
{
	const json_t *variables = json_object_get(answer, "variables"), *variable;
	const struct trust_places places = {.bundle = o->bundle, .directory = NULL, .ca = o->ca};
	size_t i;

	trust_env_set(env, &places);
	if (o->token[0] && !env_provider_leads(o->format))
		env_set_gateway(env, answer, o->token);
	if (o->proxy && *control_text(answer, "proxy"))
		trust_env_set_proxy(env, control_text(answer, "proxy"));
	for (i = 0; i < json_array_size(variables); i++) {
		variable = json_array_get(variables, i);
		set(env, control_text(variable, "name"), control_text(variable, "value"));
	}
}

/* Prints 'single quotes', in which only single quotes themselves need care. */
static void print_quoted(const char *value)
{
	putchar('\'');
	for (; *value; value++) {
		if (*value == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*value);
	}
	putchar('\'');
}

static void print_shell(const struct environment *env)
{
	for (char **var = env->vars; var && *var; var++) {
		const char *equals = strchr(*var, '=');

		printf("export %.*s=", (int)(equals - *var), *var);
		print_quoted(equals + 1);
		putchar('\n');
	}
}

/* For docker run --env-file, which takes a line as it is, so a newline cannot be written. No value
 * has one: see plain_path(). */
static void print_docker(const struct environment *env)
{
	for (char **var = env->vars; var && *var; var++)
		printf("%s\n", *var);
}

static void print_object(const struct environment *env)
{
	json_t *object = json_object();

	for (char **var = env->vars; var && *var; var++) {
		const char *equals = strchr(*var, '=');

		json_object_setn_new(
		        object, *var, (size_t)(equals - *var), json_string(equals + 1));
	}
	control_print_json(object);
	json_decref(object);
}

static int print(const struct env_options *o, const json_t *answer)
{
	struct environment env;
	int rc = 0;

	if (o->line.json) {
		control_print_json(answer);
		return 0;
	}
	if (strcmp(o->format, "pem") == 0) {
		fputs(control_text(answer, "ca_pem"), stdout);
		return 0;
	}
	environment_init(&env);
	fill(&env, o, answer);
	if (strcmp(o->format, "shell") == 0)
		print_shell(&env);
	else if (strcmp(o->format, "docker") == 0)
		print_docker(&env);
	else if (strcmp(o->format, "json") == 0)
		print_object(&env);
	else
		rc = env_provider_print(o->format, &env, answer, o->token);
	environment_fini(&env);
	return rc;
}

/* True for a path that every format can hold: a line of docker's, a string of JSON. */
static bool plain_path(const char *option, const char *path)
{
	json_t *text = json_string(path);
	bool plain = text && *path;

	json_decref(text);
	for (const char *p = path; *p; p++)
		plain = plain && (unsigned char)*p >= ' ' && *p != 0x7f;
	if (!plain)
		fprintf(stderr,
		        "vethguard: error: %s has to be a path in UTF-8 without control "
		        "characters\n",
		        option);
	return plain;
}

static bool known_format(const char *format)
{
	static const char *const formats[] = {"shell", "docker", "json", "pem"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(format, formats[i]) == 0)
			return true;
	return env_provider_is_known(format);
}

int cli_env(int argc, char **argv)
{
	struct env_options o = {.format = "shell", .bundle = BUNDLE_INSIDE, .ca = CA_INSIDE};
	struct control_answer answer;
	char path[CONTROL_PATH_MAX];
	int rc;

	(void)argc;
	if (!control_line_read(&o.line, "vethguard env", specs, argv + 1, take, &o))
		return CLI_USAGE;
	if (o.line.help) {
		help();
		return 0;
	}
	if (!known_format(o.format)) {
		fputs("vethguard: error: --format is one of shell, docker, json, "
		      "pem, " ENV_PROVIDERS "\n",
		        stderr);
		return CLI_USAGE;
	}
	if (!plain_path("--ca", o.ca) || !plain_path("--ca-bundle", o.bundle))
		return CLI_USAGE;
	if (o.line.name_count != 1) {
		fprintf(stderr, "vethguard: error: %s Usage: vethguard env NAME [OPTIONS]\n",
		        o.line.name_count ? "one sandbox at a time." : "which sandbox?");
		return CLI_USAGE;
	}
	if (!control_path(path, o.line.names[0], "/env"))
		return CLI_USAGE;
	rc = control_call(o.line.socket, "GET", path, NULL, &answer);
	if (rc)
		return rc;
	rc = o.token_file && !env_token_read(o.token_file, answer.json, o.token)
	             ? CLI_USAGE
	             : print(&o, answer.json);
	secret_wipe(o.token, sizeof(o.token));
	control_answer_free(&answer);
	return rc;
}
