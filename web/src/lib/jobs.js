// The jobs that the page knows: loaded in pages, newest first, and kept up to date by events.
import { api } from "./api";
import { changed } from "./job_state";
import { live } from "./live";
const PAGE = 1000;
class Jobs {
    list = [];
    loading = false;
    complete = false;
    error;
    version = 0;
    byId = new Map();
    listeners = new Set();
    stop = null;
    again = new Set();
    watch(call) {
        this.listeners.add(call);
        if (!this.stop)
            this.start();
        return () => {
            this.listeners.delete(call);
        };
    }
    reset() {
        this.stop?.();
        this.stop = null;
        this.list = [];
        this.byId.clear();
        this.complete = false;
    }
    tell() {
        ++this.version;
        for (const call of this.listeners)
            call();
    }
    start() {
        this.stop = live.subscribe({ after: "now" }, (message) => {
            if (message.event === "event")
                this.apply(message.data);
        });
        // Events of the time without a connection are not in the stream that begins with the next one.
        let lost = false;
        const stopState = live.watchState((state) => {
            if (state === "open" && lost)
                void this.load();
            lost = state === "lost";
        });
        const stopEvents = this.stop;
        this.stop = () => {
            stopState();
            stopEvents();
        };
        void this.load();
    }
    put(jobs) {
        for (const job of jobs) {
            const at = this.byId.get(job.id);
            if (at !== undefined)
                this.list[at] = job;
            else
                this.list.push(job);
            if (at === undefined)
                this.byId.set(job.id, this.list.length - 1);
        }
    }
    sort() {
        this.list.sort((a, b) => (a.submitted < b.submitted ? 1 : a.submitted > b.submitted ? -1 : 0));
        this.byId = new Map(this.list.map((job, index) => [job.id, index]));
    }
    async load() {
        this.loading = true;
        try {
            for (let after, first = true; first || after; first = false) {
                const page = await api.jobs({ limit: first ? 100 : PAGE, ...(after ? { after } : {}) });
                this.put(page.items);
                after = page.next;
                this.tell();
            }
            this.complete = true;
            this.error = undefined;
        }
        catch (error) {
            this.error = error;
        }
        this.loading = false;
        this.sort();
        this.tell();
    }
    apply(event) {
        const at = this.byId.get(event.job);
        const job = at === undefined ? undefined : this.list[at];
        const next = job && changed(job, event);
        if (at !== undefined && next) {
            this.list[at] = next;
            this.tell();
        }
        else {
            this.read(event.job);
        }
    }
    read(id) {
        if (this.again.has(id))
            return;
        this.again.add(id);
        api
            .job(id)
            .then((job) => {
            this.put([job]);
            this.sort();
        })
            .catch(() => {
            this.list = this.list.filter((job) => job.id !== id);
            this.sort();
        })
            .finally(() => {
            this.again.delete(id);
            this.tell();
        });
    }
}
export const jobs = new Jobs();
