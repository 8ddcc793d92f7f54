/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording: what the recorder is told, and what is kept to tell it again to the next one. A
 * recorder that has died is no failure here: it is told later.
 *
 * A session keeps everything in memory. The daemon keeps it in a directory that outlives all
 * processes (recording_keep_at): rings and journal as files, the supervisor's own events until they
 * are in the log. Killed with all its roles, it is started again, takes the ids of its sandboxes
 * from its state, opens them (recording_open) and calls recording_adopt: what the old workers wrote
 * comes into the log once.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_RECORDING_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_RECORDING_H

#include "vethguard/ipc/journal.h"
#include "vethguard/loop/loop.h"
#include "vethguard/wire/message.h"
#include "supervisor/events/audit_reopen.h"

#define RECORDER_RESTARTS_MAX 3 /* within so long; the next death is one too many */
#define RECORDER_RESTARTS_MS 60000
#define RECORDING_TOLD_MAX 16384 /* own events that wait to be in the log */
#define RECORDING_LOOKS_MAX 1024 /* so many wait: calls that only look are not added */
#define RECORDING_RINGS_MAX 64   /* of one sandbox, whose workers are gone as a rule */
#define RECORDING_READY_MAX 4    /* rings in store */
#define RECORDING_LEFT_MAX \
	32 /* sandboxes that have ended and are not in the log: then no other one begins */
#define RECORDING_WHY_MAX 320
#define RECORDING_ADOPT_MS 5000 /* for workers and recorder of a killed supervisor to be gone */

struct supervisor;
struct sandbox;

/* One ring: of one worker. */
struct recorded_ring {
	struct recorded_ring *next;
	uint64_t id;
	int fds[3];           /* memory, data, space: the worker gets copies */
	bool given;           /* to this recorder */
	uint64_t end_request; /* 0: its writer lives */
	struct recorded *of;  /* where end_request is set */
	struct recorded_ring *ending_prev, *ending_next; /* the same */
};

/* What the recorder knows under one id: a sandbox, or the daemon itself. */
struct recorded {
	struct recorded *next; /* of those left behind */
	uint64_t id;
	bool open;         /* the recorder was told of it */
	bool end_told;     /* of those left behind: and of its end */
	bool end_waits;    /* until all of the following is given */
	struct told *told; /* own events that the recorder has not said to be in the log */
	struct told
	        *next_told; /* the first that this recorder was not given yet, and all behind it */
	size_t ahead;       /* bytes of those before it */
	struct recorded_ring *rings;
	size_t rings_given;
};

/* Times in which the log could not be written, and what of it is not in the log yet. */
struct outage {
	int64_t since_ms; /* Unix time; 0: the log can be written */
	int64_t first_ms, last_ms,
	        all_ms; /* of those that were not told: begin and end, and how long all were */
	unsigned count;
	unsigned looks, lost;        /* the supervisor's own events that were left out meanwhile */
	int64_t next_told_ms;        /* of the loop's clock: before that they are gathered */
	char why[RECORDING_WHY_MAX]; /* the last one */
};

/* What a recorder is given, kept for the next one. */
struct recording {
	int log, reader, journal;  /* valid where the supervisor's log_given */
	int next_log, next_reader; /* valid where reopen_request */
	uint64_t reopen_request;
	struct audit_identity log_is, next_is;
	struct audit_opening *opening; /* of the file that is to follow; NULL: none */
	bool ended; /* it is opened because another recorder has ended this one */
	bool again; /* it may have been moved away meanwhile, too */
	char path[MESSAGE_PATH_MAX + 1];
	bool opened_as_user; /* else with the supervisor's own rights */
	struct identity opener;
	int64_t deaths_ms[RECORDER_RESTARTS_MAX]; /* the latest ones */
	size_t death_count;
	unsigned unready_deaths; /* in a row, of recorders that never got as far as to be ready */
	bool last;               /* this recorder only writes what is left: no other one follows */
	bool kept;               /* in a directory: rings and told are open there */
	int rings, told;
	int ready[RECORDING_READY_MAX][3]; /* rings without a name yet: memory, data, space */
	size_t ready_count;
	char kept_in[MESSAGE_PATH_MAX + 1]; /* that directory, as people know it */
	unsigned unkept;                    /* events in a row that could not be written there */
	size_t told_count;                  /* events in the lists of all */
	struct told *by_id;                 /* all of them */
	struct recorded_ring *ending;       /* list of all rings with an end_request */
	uint32_t after;    /* ids begin above its own, shifted: another daemon's live; 0: none */
	uint64_t first_id; /* ids below are an earlier supervisor's */
	struct outage outage;
	struct loop_timer outage_time; /* to tell what was gathered; open once that was so */
	struct loop_timer count_time;  /* recording_count_soon(); open once that was asked for */
	struct recorded daemon;        /* open in the daemon only */
	struct recorded *left;         /* of sandboxes that are not known any more */
	struct waiting_ring *waiting;  /* list of rings whose writer is still there */
	struct loop_timer retry;       /* of those; open once there was one */
};

/* Before recording_start, in the daemon: makes what is missing of rings/, told/ and journal in the
 * directory, and sees to it that ids grow over restarts (supervisor_next_id). 0; -EWOULDBLOCK:
 * another vethguardd, or a recorder it has left behind, still uses it, after RECORDING_ADOPT_MS;
 * -errno. */
int recording_keep_at(struct supervisor *sv, int directory);
/* The log (taken), open for append; path was opened with the rights of opener (copied), or with the
 * supervisor's own where that is NULL. 0 or -errno. */
int recording_start(
        struct supervisor *sv, const char *path, int log, const struct identity *opener);
/* After the log was moved away: its path is opened, without holding the loop; the chain goes on in
 * that file from recording_reopened on. Nothing happens where it is the file that is open already,
 * unless the recorder says that this one has ended: then it may go on behind its end. Where it
 * cannot be opened, that is logged, and the one that is open is written to. One at a time: what is
 * called for meanwhile follows. */
void recording_reopen(struct supervisor *sv, bool ended);
void recording_fini(struct supervisor *sv);

/* Tells the recorder of the sandbox: id, name, policy and gate are filled in. 0 or -errno. */
int recording_open(struct supervisor *sv, struct sandbox *s);
/* The daemon's own stream, for events without a sandbox; what an earlier daemon has told and is not
 * in the log is told again. 0 or -errno. */
int recording_open_daemon(struct supervisor *sv);
/* What an earlier daemon's workers and supervisor left: those of sandboxes that are open now, and
 * of others under MESSAGE_NAME_LEFT. After all of them were opened. A ring whose worker is not gone
 * yet follows when it is, within RECORDING_ADOPT_MS, or stays; one that there are no descriptors
 * for, when there are. 0 or -errno. */
int recording_adopt(struct supervisor *sv);
/* The same for the directory of another daemon, of which nothing runs any more, and what was its
 * files there are removed: rings, told, journal. How far it had recorded is known by its rings
 * only, so an event may be in the log twice; none is missing. 0 or -errno. */
int recording_adopt_from(struct supervisor *sv, int directory);
/* The same of one sandbox that is open, and its events alone: before any further event of it is
 * told, because a recorder passes over what is older than the latest. 0 or -errno. */
int recording_adopt_event(struct supervisor *sv, uint64_t id);
/* How many sandboxes have ended whose events are not all in the log yet. */
size_t recording_count_orphans(const struct supervisor *sv);
/* The sandbox is over; under s->summary_request. Told when the recorder was given all that is left
 * of it. 0 or -errno. */
int recording_end(struct supervisor *sv, struct sandbox *s);
/* How many packets its fence has dropped so far. Lost where it cannot be told: it is asked again.
 */
void recording_count(struct supervisor *sv, struct sandbox *s);
/* The same of its own accord, for a recorder that finds a sandbox which was there before it: of
 * what was dropped while nobody read the copies there is only the count. Later, because the kernel
 * gathers copies before it hands them over, and what is counted without one is told apart from its
 * kind. */
#define RECORDING_COUNT_MS 1000
#define RECORDING_COUNT_AT_ONCE 32 /* in a turn; each is several questions to the kernel */
void recording_count_soon(struct supervisor *sv, struct sandbox *s);

/* One more ring in store, with its space taken, for who has time to spare before: where rings are
 * kept and there is room. Without one it is made when it is wanted. */
void recording_prepare_ring(struct recording *r);
/* A ring for a further worker; the recorder hears of it now, or with recording_open, or when
 * earlier ones are drained. NULL with errno (ENOBUFS: RECORDING_RINGS_MAX wait for that already).
 * The ring is valid until its end is over. */
struct recorded_ring *recording_ring_new(struct supervisor *sv, struct sandbox *s);
/* Its worker is gone: the recorder reads the rest, then the ring is closed (and its file removed)
 * by itself. */
void recording_ring_end(struct supervisor *sv, struct sandbox *s, struct recorded_ring *ring);

/* All of it to another recorder. 0 or -errno. */
int recording_again(struct supervisor *sv);
/* What the recorder says: the event of this id, and those before it of its sandbox, are in the log;
 * all of the ring that ended under this id is. */
void recording_taken(struct supervisor *sv, uint64_t id);
void recording_drained(struct supervisor *sv, uint64_t id);
/* The recorder writes to the new file now, asked under this id. */
void recording_reopened(struct supervisor *sv, uint64_t id);
/* Another recorder has ended the file. */
void recording_ended(struct supervisor *sv);
/* Closes and frees what was kept of it. for_good: files too: it is over and in the log; else a
 * further supervisor finds them. */
void recording_forget(struct supervisor *sv, struct recorded *of, bool for_good);

/* Its sandbox is over, and the recorder has not said that all is in the log: rings and events are
 * kept with those left behind, until it says so, or for a further supervisor. */
void recording_leave(struct supervisor *sv, struct recorded *of);

/* events/outbox.c: the supervisor's own events. s NULL: of the daemon itself. Nothing happens where
 * the recorder was not told of the sandbox. A recorder that lets RECORDING_TOLD_MAX of them wait,
 * though it does not say that the log cannot be written, is killed; what comes until the next one
 * takes some is lost, which the daemon's own log says. */
void outbox_lifecycle(struct supervisor *sv, struct sandbox *s, enum event_lifecycle what,
        const char *cause); /* one sentence or NULL */
void outbox_finding(
        struct supervisor *sv, struct sandbox *s, enum event_finding finding, const char *text);
void outbox_observed(
        struct supervisor *sv, struct sandbox *s, enum event_finding finding, const char *text);

/* outage.c: an outage becomes a finding when it is over, of the daemon or of each sandbox of a
 * session: its time, its reason, and which of the supervisor's own events it cost. Many in a row
 * become one, told when RECORDER_STALL_SHOWN_MS are over: a recorder that was taken over may say it
 * endlessly. */
void outage_begins(struct supervisor *sv, const char *why); /* again and again is harmless */
void outage_ends(struct supervisor *sv);
void outage_tell(struct supervisor *sv); /* what was gathered, at once: no later time may come */

/* One call of the control API, whatever came of it. Texts may come from the caller: they are
 * escaped and bounded. One that only looks is left to the daemon's own log where
 * RECORDING_LOOKS_MAX events wait: who asks again and again must not crowd out what is done. */
struct outbox_call {
	const char *operation;       /* of control/routes.c: "sandboxes.attach", ...; or NULL */
	bool looks;                  /* it changes nothing */
	const char *method, *target; /* of the request: "POST", "/v1/sandboxes"; or NULL */
	const char *user_agent;      /* or NULL */
	uint32_t user_id;            /* of the caller, as SO_PEERCRED says */
	uint32_t process_id;
	const char *user;    /* its name, or NULL */
	const char *sandbox; /* the name it is about, where s is NULL (refused, not found) */
	uint16_t status;     /* of the answer; 400 and above: refused or failed */
	const char *error;   /* why, or NULL */
	const char *done;    /* of one that was done: more about it, or NULL */
};
void outbox_api(struct supervisor *sv, struct sandbox *s, const struct outbox_call *call);

/* Another policy, or another version of it, counts for the sandbox from now on. */
struct outbox_policy {
	struct slice name, fingerprint;         /* the new one's */
	struct slice old_name, old_fingerprint; /* empty: as before */
	uint64_t generation;
	const char *difference; /* as `vethguard policy diff` prints it, or NULL; the first
	                           EVENT_TEXT_MAX bytes are recorded */
};
void outbox_policy_change(
        struct supervisor *sv, struct sandbox *s, const struct outbox_policy *change);

#endif
