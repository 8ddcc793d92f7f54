/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording: what the recorder is told, and what is kept to tell a next recorder. The death of a
 * recorder is no failure here: the next one is told.
 *
 * A run keeps everything in memory. The daemon keeps it in a directory that outlives all
 * processes (recording_keep_at()): rings and journal as files, the supervisor's own events until
 * they are in the log. If the daemon is killed with all its roles, the next daemon takes the ids of
 * its sandboxes from its state, opens them (recording_open()) and calls recording_adopt(): what the
 * old workers wrote is written to the log once.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_RECORDING_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_RECORDING_H

#include "vethguard/ipc/journal.h"
#include "vethguard/loop/loop.h"
#include "vethguard/wire/message.h"
#include "supervisor/events/audit_reopen.h"

#define RECORDER_RESTARTS_MAX 3 /* within RECORDER_RESTARTS_MS; one more death is too many */
#define RECORDER_RESTARTS_MS 60000
#define RECORDING_TOLD_MAX 16384 /* own events that wait to be in the log */
#define RECORDING_LOOKS_MAX 1024 /* with this many waiting, calls that only read are not added */
#define RECORDING_RINGS_MAX 64   /* of one sandbox; usually their workers are gone */
/* Of all sandboxes: half of what the recorder takes, so that as many of an earlier daemon can be
 * adopted. */
#define RECORDING_RINGS_ALL_MAX (MESSAGE_RECORDER_RINGS_ALL_MAX / 2)
#define RECORDING_READY_MAX 4 /* rings in store */
/* Ended sandboxes whose events are not all in the log: at this number no new one starts. */
#define RECORDING_LEFT_MAX 32
#define RECORDING_WHY_MAX 320
#define RECORDING_ADOPT_MS 5000 /* for worker and recorder of a killed supervisor to exit */

struct supervisor;
struct sandbox;

/* A ring: the events of one worker. */
struct recorded_ring {
	struct recorded_ring *next;
	uint64_t id;
	int fds[3];           /* memory, data, space: the worker gets copies */
	bool given;           /* to the current recorder */
	uint64_t end_request; /* 0: its writer lives */
	struct recorded *of;  /* if end_request is set */
	struct recorded_ring *ending_prev, *ending_next; /* the same */
};

/* What the recorder knows under one id: a sandbox, or the daemon itself. */
struct recorded {
	struct recorded *next; /* in the list of orphans */
	uint64_t id;
	bool open;         /* the recorder was told of it; if held, it will be */
	bool held;         /* recording_hold(): nothing is sent yet */
	bool end_told;     /* orphans: and of its end */
	bool end_waits;    /* the end is sent after all of the following */
	struct told *told; /* own events not confirmed to be in the log */
	/* The first of these that the current recorder was not sent yet. */
	struct told *next_told;
	size_t ahead; /* bytes of the events before it */
	struct recorded_ring *rings;
	size_t rings_given;
	bool count_wanted;       /* recording_count_soon() */
	uint64_t dropped_at_end; /* packets that the fence had dropped, as told with the end */
};

/* Times in which the log could not be written, and which of these are not reported in the log
 * yet. */
struct outage {
	int64_t since_ms; /* Unix time; 0: the log can be written */
	/* Of the unreported outages: begin, end, and the sum of their times. */
	int64_t first_ms, last_ms, all_ms;
	unsigned count;
	unsigned looks, lost;        /* own events that were dropped meanwhile */
	int64_t next_told_ms;        /* on the loop's clock: earliest next report */
	char why[RECORDING_WHY_MAX]; /* the last reason */
};

/* What a recorder is given, kept for the next one. */
struct recording {
	int log, reader, journal;  /* valid if recorder_life.log_given is set */
	int next_log, next_reader; /* valid if reopen_request is set */
	uint64_t reopen_request;
	struct audit_identity log_is, next_is;
	struct audit_opening *opening; /* of the next file; NULL: none */
	bool ended;                    /* the reason: another recorder has ended this file */
	bool again;                    /* the file may have been moved away meanwhile */
	char path[MESSAGE_PATH_MAX + 1];
	bool opened_as_user; /* else with the supervisor's own rights */
	struct identity opener;
	int64_t deaths_ms[RECORDER_RESTARTS_MAX]; /* the last ones */
	size_t death_count;
	unsigned unready_deaths; /* consecutive deaths of recorders that were never ready */
	bool last;               /* this recorder writes the rest: no other one follows */
	bool kept;               /* in a directory: rings and told are open */
	int rings, told;
	int ready[RECORDING_READY_MAX][3]; /* unnamed rings: memory, data, space */
	size_t ready_count;
	char kept_in[MESSAGE_PATH_MAX + 1]; /* path of that directory, for people */
	unsigned unkept;                    /* consecutive events that could not be written there */
	size_t told_count;                  /* events in all lists */
	struct told *by_id;                 /* all of them */
	struct recorded_ring *ending;       /* list of all rings with an end_request */
	uint32_t after;    /* own ids are above this << 32: another daemon's are in use; 0: none */
	uint64_t first_id; /* lower ids are an earlier supervisor's */
	struct outage outage;
	struct loop_timer outage_time; /* for the next report; open once it was needed */
	struct loop_timer count_time;  /* recording_count_soon(); open once it was needed */
	size_t ring_count;             /* of all sandboxes */
	struct recorded daemon;        /* open in the daemon only */
	struct recorded *left;         /* orphans: sandboxes that are not known any more */
	struct waiting_ring *waiting;  /* list of rings whose writer still exists */
	struct loop_timer retry;       /* for these; open once it was needed */
};

/* Daemon only, before recording_start(): makes what is missing of rings/, told/ and journal in the
 * directory, and makes ids grow across restarts (supervisor_next_id()). Returns 0; -EWOULDBLOCK:
 * after RECORDING_ADOPT_MS another vethguardd, or a recorder it has left behind, still uses the
 * directory; -errno. */
int recording_keep_at(struct supervisor *sv, int directory);
/* Call this before recording_keep_at(): another daemon uses the ids up to after << 32. */
void recording_begin_after(struct recording *r, uint32_t after);
/* Sets the log (takes ownership), open for appending. path was opened with the rights of opener
 * (copied), or the supervisor's own if that is NULL. Returns 0 or -errno. */
int recording_start(
        struct supervisor *sv, const char *path, int log, const struct identity *opener);
/* Call when the log may have been moved away: opens its path without blocking the loop; the chain
 * continues in the new file, from recording_reopened() on. If it is still the same file, nothing
 * happens, unless the recorder has found that this file was ended (ended): then it may continue
 * behind the end. If it cannot be opened, that is logged and the open file is used. One reopening
 * at a time: a call during one is done after it. */
void recording_reopen(struct supervisor *sv, bool ended);
void recording_fini(struct supervisor *sv);

/* Tells the recorder of the sandbox; id, name, policy and gate are filled in. Returns 0 or
 * -errno. */
int recording_open(struct supervisor *sv, struct sandbox *s);
/* Like recording_open(), but sends nothing until recording_release(). Meanwhile the sandbox's
 * events are kept, in files if those of the daemon are: they are not lost, and the recorder does
 * not wake before a caller is answered. */
void recording_hold(struct sandbox *s);
/* Sends what recording_hold() kept. Returns 0, or -errno: then it is held as before. */
int recording_release(struct supervisor *sv, struct sandbox *s);
/* Opens the daemon's own stream, for events without a sandbox. Events that an earlier daemon has
 * sent and that are not in the log are sent again. Returns 0 or -errno. */
int recording_open_daemon(struct supervisor *sv);
/* Adopts what an earlier daemon's workers and supervisor left, for the sandboxes that are open now,
 * and for others under MESSAGE_NAME_LEFT. Call this after all sandboxes were opened. A ring whose
 * worker has not exited follows when it has, within RECORDING_ADOPT_MS, or stays; a ring for which
 * there are no descriptors follows when there are. Returns 0 or -errno. */
int recording_adopt(struct supervisor *sv);
/* The same for the directory of another daemon whose processes have all ended; its files there are
 * removed: rings, told, journal. How far it had recorded is known from its rings only, so an event
 * may be in the log twice; none is missing. Returns 0 or -errno. */
int recording_adopt_from(struct supervisor *sv, int directory);
/* Adopts the supervisor's events of one open sandbox. Call this before any new event of it is sent,
 * because a recorder ignores events that are older than the latest. Returns 0 or -errno. */
int recording_adopt_event(struct supervisor *sv, uint64_t id);
/* Returns the number of ended sandboxes whose events are not all in the log yet. */
size_t recording_count_orphans(const struct supervisor *sv);
/* Ends the sandbox, under s->summary_request. The recorder is told after it was given all that is
 * left of it. Returns 0 or -errno. */
int recording_end(struct supervisor *sv, struct sandbox *s);
/* Tells the recorder how many packets the fence has dropped so far. If that cannot be sent, it is
 * lost: the recorder asks again. */
void recording_count(struct supervisor *sv, struct sandbox *s);
/* The same after RECORDING_COUNT_MS, for a recorder that is newer than the sandbox: packets that
 * were dropped while nobody read the copies are known only by their count. It is delayed because
 * the kernel gathers copies before it delivers them, and packets that are counted without a copy
 * are recorded without their kind. */
#define RECORDING_COUNT_MS 1000
#define RECORDING_COUNT_AT_ONCE 32 /* per turn; each takes several queries to the kernel */
void recording_count_soon(struct supervisor *sv, struct sandbox *s);

/* Makes one more ring for the store, with its space allocated, in spare time; only if rings are
 * kept and there is room. Otherwise a ring is made when it is needed. */
void recording_prepare_ring(struct recording *r);
/* Makes a ring for another worker. The recorder is told at once, with recording_open(), or when
 * earlier rings are drained. Returns NULL with errno (ENOBUFS: RECORDING_RINGS_MAX wait already, or
 * RECORDING_RINGS_ALL_MAX of all sandboxes).
 * The ring is valid until its end is over. */
struct recorded_ring *recording_ring_new(struct supervisor *sv, struct sandbox *s);
/* The worker is gone: the recorder reads the rest, then the ring is closed and its file removed. */
void recording_ring_end(struct supervisor *sv, struct sandbox *s, struct recorded_ring *ring);

/* Sends everything to a new recorder. Returns 0 or -errno. */
int recording_again(struct supervisor *sv);
/* Messages from the recorder: the event with this id and the earlier ones of its sandbox are in the
 * log; the whole ring that was ended under this id is. */
void recording_taken(struct supervisor *sv, uint64_t id);
void recording_drained(struct supervisor *sv, uint64_t id);
/* The recorder writes to the new file now, requested under this id. */
void recording_reopened(struct supervisor *sv, uint64_t id);
/* Another recorder has ended the file. */
void recording_ended(struct supervisor *sv);
/* Closes and frees what was kept of it. for_good: it is over and in the log, so the files are
 * removed too; otherwise a later supervisor finds them. */
void recording_forget(struct supervisor *sv, struct recorded *of, bool for_good);

/* The sandbox is over, and the recorder has not confirmed that all is in the log: its rings and
 * events become an orphan until that is confirmed, or for a later supervisor. */
void recording_leave(struct supervisor *sv, struct recorded *of);

/* outbox.c: the supervisor's own events. s NULL: of the daemon itself. Nothing happens if the
 * recorder was not told of the sandbox. A recorder that lets RECORDING_TOLD_MAX events wait,
 * without having said that the log cannot be written, is killed. Events beyond that are lost until
 * a recorder takes some; the daemon's log says so. */
void outbox_lifecycle(struct supervisor *sv, struct sandbox *s, enum event_lifecycle what,
        const char *cause); /* one sentence or NULL */
void outbox_finding(
        struct supervisor *sv, struct sandbox *s, enum event_finding finding, const char *text);
void outbox_observed(
        struct supervisor *sv, struct sandbox *s, enum event_finding finding, const char *text);

/* outage.c: when an outage is over it is recorded as a finding, of the daemon or of each sandbox of
 * a run: its time, its reason, and which of the supervisor's own events were lost. Several
 * within RECORDER_STALL_SHOWN_MS become one finding: a compromised recorder may report outages
 * without end. */
void outage_begins(struct supervisor *sv, const char *why); /* may be called repeatedly */
void outage_ends(struct supervisor *sv);
void outage_tell(struct supervisor *sv); /* reports at once: there may be no later time */

/* A call of the control API, whatever its result. Texts may come from the caller: they are escaped
 * and bounded. A call that only reads goes to the daemon's log instead if RECORDING_LOOKS_MAX
 * events wait: repeated queries must not crowd out changes. */
struct outbox_call {
	const char *operation;       /* of control/routes.c: "sandboxes.attach", ...; or NULL */
	bool looks;                  /* it changes nothing */
	const char *method, *target; /* of the request: "POST", "/v1/sandboxes"; or NULL */
	const char *user_agent;      /* or NULL */
	uint32_t user_id;            /* of the caller, from SO_PEERCRED */
	uint32_t process_id;
	const char *user;    /* its name, or NULL */
	const char *sandbox; /* name of the sandbox if s is NULL (refused, not found) */
	uint16_t status;     /* of the response; 400 and above: refused or failed */
	const char *error;   /* why, or NULL */
	const char *done;    /* details of a successful call, or NULL */
};
void outbox_api(struct supervisor *sv, struct sandbox *s, const struct outbox_call *call);

/* Another policy, or another version of it, is in force for the sandbox from now on. */
struct outbox_policy {
	struct slice name, fingerprint;         /* the new one's */
	struct slice old_name, old_fingerprint; /* empty: unchanged */
	uint64_t generation;
	const char *difference; /* as `vethguard policy diff` prints it, or NULL; the first
	                           EVENT_TEXT_MAX bytes are recorded */
};
void outbox_policy_change(
        struct supervisor *sv, struct sandbox *s, const struct outbox_policy *change);

#endif
