// An item of the transcript, by its type.
import { html } from "../html.js";
import { AgentMessage, UserMessage } from "./message.js";
import { Command } from "./command.js";
import { Change } from "./change.js";
import { Reasoning } from "./reasoning.js";
import { Plan, Todo } from "./plan.js";
import { Tool } from "./tool.js";
import { Picture } from "./picture.js";
import { TurnEnd } from "./turn_end.js";
import { Remark } from "./remark.js";

const BY_TYPE = {
  userMessage: UserMessage,
  agentMessage: AgentMessage,
  commandExecution: Command,
  fileChange: Change,
  reasoning: Reasoning,
  plan: Plan,
  todo: Todo,
  mcpToolCall: Tool,
  dynamicToolCall: Tool,
  collabAgentToolCall: Tool,
  webSearch: Tool,
  functionCallOutput: Tool,
  imageView: Picture,
  imageGeneration: Picture,
  turnEnd: TurnEnd,
};

export function Item({ row, model }) {
  const item = row.item.value;
  const View = BY_TYPE[item.type] ?? Remark;
  return html`<${View} item=${item} turnId=${row.turnId} model=${model} />`;
}
