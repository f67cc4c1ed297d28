import { readUsage, type Usage } from "./usage.js";

type Fields = Readonly<Record<string, unknown>>;

const CHARACTERS_PER_TOKEN = 4;

/**
 * What a stream has used so far. Providers tell the usage at the end: OpenAI in the last chunk or with
 * `response.completed`, Anthropic the input in `message_start` and the output in `message_delta`. Until
 * then the text that came is counted, so that a stream that is aborted can be settled.
 */
export class StreamTally {
  #told: Fields = {};
  #isWhole = false;
  #characters = 0;

  /** Takes an event's data; tells whether it carries nothing but the usage. */
  add(event: unknown): boolean {
    const fields = fieldsOf(event);
    const begun = fieldsOf(fieldsOf(fields.message).usage);
    const told = { ...fieldsOf(fields.usage), ...fieldsOf(fieldsOf(fields.response).usage) };
    for (const [name, value] of Object.entries({ ...begun, ...told })) {
      if (value !== null && value !== undefined) this.#told = { ...this.#told, [name]: value };
    }
    if (Object.keys(told).length > 0) this.#isWhole = true;
    const choices = Array.isArray(fields.choices) ? fields.choices : [];
    this.addText(fields.delta);
    for (const choice of choices) this.addText(fieldsOf(choice).delta);
    return Object.keys(told).length > 0 && Array.isArray(fields.choices) && choices.length === 0;
  }

  /** Counts generated text: a string, or the parts of a delta that hold it. */
  addText(delta: unknown): void {
    if (typeof delta === "string") {
      this.#characters += delta.length;
      return;
    }
    const { content, reasoning_content, text, thinking, partial_json, tool_calls } = fieldsOf(delta);
    for (const part of [content, reasoning_content, text, thinking, partial_json]) {
      if (typeof part === "string") this.#characters += part.length;
    }
    for (const call of Array.isArray(tool_calls) ? tool_calls : []) {
      const { arguments: text } = fieldsOf(fieldsOf(call).function);
      if (typeof text === "string") this.#characters += text.length;
    }
  }

  /** The usage as it was told; undefined when the stream has not told it all. */
  get whole(): Usage | undefined {
    return this.#isWhole ? readUsage(this.#told) : undefined;
  }

  /** What was used until now, where the stream ended early: the input, and the answer as far as it came. */
  partial(reserved: Usage): Usage {
    const told = readUsage(this.#told) ?? {};
    const came = Math.ceil(this.#characters / CHARACTERS_PER_TOKEN);
    const inputTokens = told.inputTokens ?? reserved.inputTokens;
    return {
      ...told,
      ...(inputTokens !== undefined && { inputTokens }),
      outputTokens: Math.max(told.outputTokens ?? 0, came),
    };
  }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}
