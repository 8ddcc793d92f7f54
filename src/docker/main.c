/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard-docker: networks for Docker whose containers are guarded from their first packet on. It
 * keeps one capability, CAP_NET_ADMIN, for the interfaces that it makes; everything else is the
 * daemon's, over the control socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/adapter/control_client.h"
#include "vethguard/base/log.h"
#include "vethguard/base/options.h"
#include "vethguard/base/version.h"
#include "vethguard/ipc/journald.h"
#include "vethguard/ipc/service.h"
#include "vethguard/jail/capabilities.h"
#include "vethguard/loop/unix_listener.h"
#include "docker/docker.h"

#define STATUS_FAILED 125
#define CAPABILITIES_KEPT (1ull << CAP_NET_ADMIN)
#define DIRECTORY_MODE 0700

enum {
	OPTION_SOCKET,
	OPTION_CONTROL,
	OPTION_POLICIES,
	OPTION_STATE,
	OPTION_VERBOSE,
	OPTION_VERSION,
	OPTION_HELP
};

static const struct option_spec specs[] = {
        [OPTION_SOCKET] = {"socket", 0, "PATH",
                "where dockerd asks; default:\n" DOCKER_SOCKET_DEFAULT},
        [OPTION_CONTROL] = {"control", 0, "PATH",
                "vethguardd's control API; default:\n" CONTROL_SOCKET_DEFAULT},
        [OPTION_POLICIES] = {"policies", 0, "DIR",
                "of -o policy=NAME; default:\n" POLICY_DIRECTORY_DEFAULT},
        [OPTION_STATE] = {"state", 0, "DIR",
                "the networks' options; default:\n" DOCKER_STATE_DEFAULT},
        [OPTION_VERBOSE] = {"verbose", 'v', NULL, "log what is done; twice: in detail"},
        [OPTION_VERSION] = {"version", 0, NULL, "the version"},
        [OPTION_HELP] = {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

struct arguments {
	const char *socket;
	unsigned verbose;
};

static struct docker docker = {.control = CONTROL_SOCKET_DEFAULT,
        .policies = POLICY_DIRECTORY_DEFAULT,
        .state = DOCKER_STATE_DEFAULT};

static void help(void)
{
	fputs("Usage: vethguard-docker [OPTIONS]\n\n"
	      "Serves dockerd as its network driver \"vethguard\", until SIGTERM: each container "
	      "of\n"
	      "such a network is a sandbox of vethguardd from its first packet on.\n\n"
	      "  docker network create -d vethguard -o policy=agent agents\n"
	      "  docker run --network agents --dns 192.0.2.53 my-image\n\n",
	        stdout);
	options_print(specs, stdout);
	_exit(fflush(stdout) == 0 ? 0 : STATUS_FAILED);
}

static void version(void)
{
	puts("vethguard-docker " VERSION_TEXT);
	_exit(fflush(stdout) == 0 ? 0 : STATUS_FAILED);
}

static void take_option(int option, const char *value, struct arguments *arguments)
{
	if (option == OPTION_SOCKET)
		arguments->socket = value;
	else if (option == OPTION_CONTROL)
		docker.control = value;
	else if (option == OPTION_POLICIES)
		docker.policies = value;
	else if (option == OPTION_STATE)
		docker.state = value;
	else if (option == OPTION_VERBOSE)
		arguments->verbose++;
	else if (option == OPTION_VERSION)
		version();
	else
		help();
}

static void read_arguments(char **argv, struct arguments *arguments)
{
	static const enum log_level levels[] = {LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG};
	struct options options;
	int option;

	options_init(&options, "vethguard-docker", specs, argv);
	while ((option = options_next(&options)) >= 0)
		take_option(option, options.value, arguments);
	if (option == OPTIONS_WRONG)
		_exit(STATUS_FAILED);
	if (*options.argv)
		die(STATUS_FAILED, "%s: nothing but options is expected", *options.argv);
	log_open("vethguard-docker", levels[arguments->verbose < 2 ? arguments->verbose : 2]);
}

static void must(const char *what, int rc)
{
	if (rc)
		die(STATUS_FAILED, "%s: %s", what, strerror(-rc));
}

static void listen_at(struct unix_listener *listener, const char *path)
{
	const char *why = NULL;
	int rc = unix_listener_inherit(listener, path, 0, &why);

	if (rc == -EINVAL)
		die(STATUS_FAILED, "the socket that was passed is not used: %s", why);
	if (rc == -ENOENT)
		rc = unix_listener_open(listener, path, 0);
	if (rc == -EADDRINUSE)
		die(STATUS_FAILED, "%s: somebody listens there already", path);
	if (rc == -ENOENT)
		die(STATUS_FAILED,
		        "%s: there is no such directory; dockerd looks for plugins in %s", path,
		        "/run/docker/plugins");
	must(path, rc);
}

/* The networks' files decide by which policy containers are guarded. */
static void check_state(void)
{
	struct stat st;

	if (mkdir(docker.state, DIRECTORY_MODE) < 0 && errno != EEXIST)
		must(docker.state, -errno);
	if (stat(docker.state, &st) < 0)
		must(docker.state, -errno);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		die(STATUS_FAILED,
		        "%s: has to be a directory that only its owner can write, who runs "
		        "this program",
		        docker.state);
}

static void give_up(void)
{
	struct capabilities have;
	int rc = capabilities_bound(CAPABILITIES_KEPT);

	if (rc == -EPERM) /* without CAP_SETPCAP the parent has reduced it already */
		rc = 0;
	if (!rc)
		rc = capabilities_get(&have);
	if (!rc) {
		have.effective &= CAPABILITIES_KEPT;
		have.permitted &= CAPABILITIES_KEPT;
		have.inheritable = 0;
		rc = capabilities_set(&have);
	}
	must("giving up capabilities", rc);
	if (!capabilities_have(CAP_NET_ADMIN))
		die(STATUS_FAILED, "the capability CAP_NET_ADMIN is needed: start it as root");
}

static void on_terminate(struct loop_signal *s)
{
	service_stopping();
	loop_stop(s->loop);
}

static void serve(struct unix_listener *listener)
{
	static struct loop_signal terminate, interrupt;

	must("signals", loop_signal_open(docker.loop, &terminate, SIGTERM, on_terminate));
	must("signals", loop_signal_open(docker.loop, &interrupt, SIGINT, on_terminate));
	must("the socket", docker_service_open(&docker, listener->fd));
	must("timers", docker_sweep_open(&docker));
	service_ready("serves dockerd at %s", listener->path);
	must("the loop does not run", loop_run(docker.loop));
	http_server_free(docker.server);
	loop_timer_close(&docker.sweep);
	loop_signal_close(&terminate);
	loop_signal_close(&interrupt);
}

int main(int argc, char **argv)
{
	struct arguments arguments = {.socket = DOCKER_SOCKET_DEFAULT};
	struct unix_listener listener;

	(void)argc;
	log_open("vethguard-docker", LOG_LEVEL_WARN);
	read_arguments(argv + 1, &arguments);
	signal(SIGPIPE, SIG_IGN);
	listen_at(&listener, arguments.socket);
	service_open();
	journald_open(JOURNALD_SOCKET);
	check_state();
	give_up();
	docker.netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	must("the network namespace", docker.netns < 0 ? -errno : 0);
	must("netlink", netlink_open(&docker.nl));
	docker.warned = json_object();
	must("memory", docker.warned ? 0 : -ENOMEM);
	docker.loop = loop_new();
	must("the loop", docker.loop ? 0 : -ENOMEM);
	serve(&listener);
	json_decref(docker.warned);
	loop_free(docker.loop);
	netlink_close(docker.nl);
	close(docker.netns);
	unix_listener_close(&listener);
	service_close();
	return 0;
}
