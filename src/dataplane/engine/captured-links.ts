/** Which links of a graph a capture at a component is about. */
import type { CaptureOptions } from './capture.ts'
import type { Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import { connect } from './ports.ts'

/** The names of the connection points, in the order of the component's ports. Empty: the component has none at that side, or there is no such component. */
export function capturedLinks(
  { components }: PipelineConfig,
  available: Registry,
  { component, side }: Pick<CaptureOptions, 'component' | 'side'>,
): string[] {
  const { ports } = connect(components, available)
  return (ports.get(component) ?? []).filter(({ kind }) => kind === side).map(({ name }) => name)
}
