// Small parts that several pages use.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../lib/api";
import { follow } from "../lib/router";
import { t } from "../lib/strings";

export function Link(properties: {
  href: string;
  children: ComponentChildren;
  current?: boolean;
  class?: string;
}) {
  return (
    <a
      href={properties.href}
      onClick={follow}
      class={properties.class}
      aria-current={properties.current ? "page" : undefined}
    >
      {properties.children}
    </a>
  );
}

export function State({ state }: { state: string }) {
  return <span class={`state ${state}`}>{state}</span>;
}

export function Fault({ error }: { error: unknown }) {
  if (!error) return null;
  const details = error instanceof ApiError ? error.errors : [];
  return (
    <div class="error" role="alert">
      {details.length > 0
        ? details.map((one) => (
            <div key={`${one.field}${one.line}`}>
              {one.line ? `${one.line}:${one.column} ` : ""}
              {one.message.startsWith(one.field) ? "" : `${one.field}: `}
              {one.message}
            </div>
          ))
        : error instanceof Error
          ? error.message
          : String(error)}
    </div>
  );
}

export interface Loaded<T> {
  value: T | undefined;
  error: unknown;
  reload: () => void;
}

// Loads when `key` changes and when `reload` is called. The last value stays while it loads again.
export function useLoad<T>(key: string, load: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; value?: T; error?: unknown }>({ key });
  const [turn, setTurn] = useState(0);
  const asked = useRef(0);
  useEffect(() => {
    const mine = ++asked.current;
    load().then(
      (value) => {
        if (mine === asked.current) setState({ key, value });
      },
      (error) => {
        if (mine === asked.current) setState((old) => ({ ...old, key, error }));
      },
    );
    return () => {
      if (mine === asked.current) ++asked.current;
    };
  }, [key, turn]);
  const fresh = state.key === key;
  return {
    value: fresh ? state.value : undefined,
    error: fresh ? state.error : undefined,
    reload: () => setTurn((old) => old + 1),
  };
}

// The time now, again every `period` milliseconds.
export function useNow(period: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), period);
    return () => clearInterval(timer);
  }, [period]);
  return now;
}

// A dialog over the page. The browser keeps the focus in it and closes it with Escape.
export function Dialog(properties: {
  label: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} aria-label={properties.label} onClose={properties.onClose}>
      {properties.children}
    </dialog>
  );
}

export function Confirm(properties: {
  text: string;
  action: string;
  onYes: () => void;
  onClose: () => void;
}) {
  return (
    <Dialog label={properties.action} onClose={properties.onClose}>
      <p>{properties.text}</p>
      <div class="bar">
        <button
          type="button"
          class="danger"
          onClick={() => {
            properties.onYes();
            properties.onClose();
          }}
        >
          {properties.action}
        </button>
        <button type="button" onClick={properties.onClose}>
          {t("cancel")}
        </button>
      </div>
    </Dialog>
  );
}

export function Tabs(properties: {
  tabs: [string, string][];
  current: string;
  onChoose: (name: string) => void;
}) {
  const { tabs, current, onChoose } = properties;
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = tabs.findIndex(([name]) => name === current);
    const next = (at + step + tabs.length) % tabs.length;
    onChoose(tabs[next]?.[0] ?? current);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div role="tablist" ref={list} onKeyDown={move}>
      {tabs.map(([name, text]) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-selected={name === current}
          aria-controls="panel"
          tabIndex={name === current ? 0 : -1}
          onClick={() => onChoose(name)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

// What may be wider than the page: it is scrolled alone, by the keyboard too.
export function Scroll(properties: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard could not scroll it
    <section class="scroll" aria-label={properties.label} tabIndex={0}>
      {properties.children}
    </section>
  );
}
