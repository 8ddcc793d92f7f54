/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the daemon: directories and the lock; keeper and recorder; reading what an earlier
 * daemon has left; the control socket (answer.c); recovering what was left, then it is ready;
 * running the loop.
 *
 * SIGTERM ends it in order (signals.c): workers finish what they can in time, and the recorder
 * writes everything. The sandboxes stay as after a crash: their rules stand and nothing listens, so
 * they are closed until the next daemon serves them.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/linux.h"
#include "vethguard/base/version.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/service.h"
#include "supervisor/daemon/daemon_state.h"
#include "supervisor/events/generations.h"
#include "supervisor/os/fd_limit.h"
#include "supervisor/os/heap.h"
#include "supervisor/recover/recover.h"

static struct daemon daemon_state;

/* Configuration. */

static void find_config(struct attachments *all, const char *given)
{
	/* A file that cannot be examined does not count as missing. */
	bool none = !given && access(DAEMON_CONFIG, F_OK) != 0 && errno == ENOENT;
	const char *path = given ? given : none ? NULL : DAEMON_CONFIG;
	char full[PATH_MAX];

	if (path && !realpath(path, full))
		die(STATUS_FAILED, "%s: %s", path, strerror(errno));
	snprintf(all->config_path, sizeof(all->config_path), "%s", path ? full : "");
}

/* Loads the configuration once to validate it, and for the daemon's own settings. */
static void check_config(struct daemon *d)
{
	struct attachments *all = &d->attachments;
	struct diag_list *diags = calloc(1, sizeof(*diags));
	struct config *config = calloc(1, sizeof(*config));

	if (!diags || !config)
		die(STATUS_FAILED, "no memory");
	config_init(config);
	bool good = settings_load_config(all->config_path, config, diags) == 0;
	if (good && d->options->check_config) {
		settings_check_config_files(config, all->config_path, diags);
		good = diags->count == 0;
	}
	if (!good) {
		diag_print(diags, stderr);
		die(STATUS_FAILED, "the configuration cannot be used");
	}
	if (!all->audit_path[0])
		snprintf(all->audit_path, sizeof(all->audit_path), "%s", config->audit_file);
	d->watch_policies = config->watch;
	d->supervisor.ca_life.config = config->ca;
	key_tokens_keep(&d->supervisor, config);
	d->attachments.ask = config->ask;
	d->supervisor.quota.config = config->quota;
	if (config_gateway_copy(&d->supervisor.gateway.config, &config->gateway) != 0)
		die(STATUS_FAILED, "no memory");
	if (bundles_configure(all, config) != 0)
		die(STATUS_FAILED, "no memory");
	config_fini(config);
	free(config);
	free(diags);
}

/* End. */

void daemon_stop(struct daemon *d, int status)
{
	if (status && !d->supervisor.status)
		d->supervisor.status = status;
	service_stopping();
	if (!d->attachments.stopping) {
		outage_tell(&d->supervisor);
		outbox_lifecycle(&d->supervisor, NULL, EVENT_STOP, NULL);
	}
	/* Clients that call from now on wait for the next daemon, which listens on the same
	 * socket. */
	if (d->control && !d->listener.ours)
		control_hold(d->control, true);
	attachments_stop(&d->attachments);
}

void daemon_finish_when_alone(struct daemon *d)
{
	if (d->attachments.stopping && !d->attachments.by_name && !takeover_is_open(&d->takeover))
		supervisor_finish(&d->supervisor, 0);
}

static void on_empty(struct attachments *all)
{
	daemon_finish_when_alone(container_of(all, struct daemon, attachments));
}

/* Start. */

/* Without gates in store attaching only takes longer. They fit at once if the configuration sets no
 * addresses, port and bounds; otherwise from the second on (gate_host_take()). */
static void prepare_gates(struct supervisor *sv)
{
	struct config config;
	struct gate like;
	int rc;

	config_init(&config);
	gate_init(&like);
	gate_assign(&like, &config.pool4, &config.pool6);
	like.tcp_port = config.proxy_port;
	like.bounds = sandbox_bounds(&config.limits);
	config_fini(&config);
	rc = gate_host_prepare(sv->gates, &like, ATTACH_GATES);
	if (rc)
		log_warn("no gates can be made in advance: %s", strerror(-rc));
}

/* All sandboxes that existed are served, or about to be. */
static void on_recovered(struct attachments *all)
{
	struct daemon *d = container_of(all, struct daemon, attachments);
	struct supervisor *sv = &d->supervisor;
	int rc = recording_adopt(sv);

	if (rc)
		log_error(
		        "not all that was recorded before could be taken over: %s", strerror(-rc));
	if (!takeover_is_active(&d->takeover))
		journal_generation_adopt_others(sv, d->state_directory, d->set);
	source_leases_recover(&sv->leases);
	prepare_gates(sv);
	if (all->on_changed)
		all->on_changed(all);
	if (takeover_is_active(&d->takeover))
		return;
	gateway_open(sv);
	quota_open(sv);
	bundles_poll(all);
	supervisor_roles_ready(sv);
}

void daemon_serve(struct daemon *d)
{
	int rc = d->watch_policies ? attachments_watch_policies(&d->attachments) : 0;

	if (rc)
		log_warn("policies are not watched: %s", strerror(-rc));
	d->attachments.on_recovered = on_recovered;
	rc = worker_pool_open(&d->supervisor, ATTACH_POOLED_WORKERS);
	if (rc)
		die(STATUS_FAILED, "no memory");
	bundles_load(&d->attachments);
	rc = attachments_recover(&d->attachments);
	if (rc)
		die(STATUS_FAILED, "no memory");
}

/* The control socket opens when all sandboxes are known; the daemon is ready when all are
 * recovered. */
static void on_roles_ready(struct supervisor *sv)
{
	struct daemon *d = container_of(sv, struct daemon, supervisor);

	if (takeover_is_active(&d->takeover))
		takeover_begin(d);
	else if (!d->ready && !d->attachments.stopping)
		daemon_answer(d);
}

static void on_keeper_lost(struct supervisor *sv, const char *how)
{
	struct daemon *d = container_of(sv, struct daemon, supervisor);

	log_error("the keeper %s: without a root CA nothing can be served", how);
	daemon_stop(d, STATUS_FAILED);
}

static void on_watchdog(struct loop_timer *timer)
{
	service_watchdog();
	loop_timer_set(timer, service_watchdog_ms());
}

static void start(struct daemon *d)
{
	struct supervisor *sv = &d->supervisor;
	const char *step;
	int rc;

	sv->persistent = true;
	sv->on_roles_ready = on_roles_ready;
	sv->keeper_life.on_lost = on_keeper_lost;
	rc = priority_open(&d->priority, d->loop);
	if (rc)
		log_info(
		        "the daemon runs at ordinary priority (%s): where sandboxes keep every CPU "
		        "busy, it waits for its turn",
		        strerror(-rc));
	rc = supervisor_start(sv, d->loop, &step);
	if (rc)
		die(STATUS_FAILED, "cannot start %s: %s", step, strerror(-rc));
	sv->leases.directory = d->leases; /* the supervisor owns it from now on */
	sv->leases.config_path = d->attachments.config_path;
	daemon_open_log(d);
	d->attachments.on_empty = on_empty;
	d->attachments.generation = 1;
	d->attachments.started_ms = clock_real_ms();
	d->attachments.supervisor = sv;
	rc = recording_open_daemon(sv);
	if (rc)
		die(STATUS_FAILED, "the recorder: %s", strerror(-rc));
	outbox_lifecycle(sv, NULL, EVENT_START, "version " VERSION_TEXT);
	if (!takeover_is_active(&d->takeover))
		daemon_serve(d);
	if (service_watchdog_ms())
		loop_timer_set(&d->watchdog, service_watchdog_ms());
}

static void clean_up(struct daemon *d)
{
	upgrade_close(d);
	takeover_close(d);
	if (d->control)
		control_free(d->control);
	unix_listener_close(&d->listener);
	attachments_close(&d->attachments);
	supervisor_fini(&d->supervisor);
	priority_close(&d->priority);
	daemon_close_signals(d);
	loop_timer_close(&d->watchdog);
	service_close();
	loop_free(d->loop);
	close(d->supervisor.ca);
	close(d->state_directory);
	close(d->supervisor.names);
	close(d->supervisor.limits);
	close(d->lock);
}

int daemon_run(const struct daemon_options *options)
{
	struct daemon *d = &daemon_state;
	int rc;

	d->state = options->state ? options->state : DAEMON_STATE;
	d->options = options;
	d->listener.fd = d->takeover.listener = d->lock = -1;
	d->data = options->data ? options->data : DAEMON_DATA;
	find_config(&d->attachments, options->config);
	if (options->audit)
		snprintf(d->attachments.audit_path, sizeof(d->attachments.audit_path), "%s",
		        options->audit);
	check_config(d);
	if (options->check_config)
		return 0;
	daemon_take_passed_socket(d);
	if (options->take_over)
		takeover_open(d, options->take_over);
	else
		service_open();
	fd_limit_raise(ATTACHMENTS_MAX);
	daemon_open_directories(d);
	heap_open();
	d->loop = loop_new();
	if (!d->loop || daemon_open_signals(d) != 0 ||
	        loop_timer_open(d->loop, &d->watchdog, on_watchdog) != 0)
		die(STATUS_FAILED, "no memory");
	start(d);
	rc = loop_run(d->loop);
	clean_up(d);
	return rc ? STATUS_FAILED : d->supervisor.status;
}
