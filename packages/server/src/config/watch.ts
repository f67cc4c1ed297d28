import { type FSWatcher, statSync, watch } from "node:fs";
import { dirname } from "node:path";

/** Editors write in several steps; what follows within this time is one change. */
const SETTLE_MS = 50;

/**
 * Calls back after something changed at or beside the paths: folders are watched rather than files,
 * since editors and Kubernetes put a new file in the old one's place. Answers how to stop.
 */
export function watchPaths(paths: readonly string[], onChange: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, SETTLE_MS);
  };
  const folders = new Set(paths.map((path) => (statSync(path).isDirectory() ? path : dirname(path))));
  const watchers: FSWatcher[] = [...folders].map((folder) =>
    watch(folder, { persistent: false }, soon).on("error", () => {}),
  );
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}
