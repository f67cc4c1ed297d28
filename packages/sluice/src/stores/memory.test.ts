import { describe, it } from "vitest";
import { conformance } from "../testing/index.js";
import { memoryStore } from "./memory.js";

conformance({ name: "memoryStore", describe, it, createStore: memoryStore, decisions: 1_000_000 });
