import type { AnyComponent } from '../../src/dataplane/engine/component.ts'

declare const extra: AnyComponent[]
export default extra
