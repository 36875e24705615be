/** The configuration of a relay (RelayConfiguration): its schema, and what is wrong with one beyond it. */
import { type Static, Type } from '@sinclair/typebox'
import { type Problem, pointerOf } from '../../text/pointer.ts'
import { List, Optional, Text } from './schema.ts'

const Name = (description: string) => Text(description, { minLength: 1, maxLength: 256 })

export const RelayConfiguration = Type.Object({
  entry_pipeline: Name('The pipeline that packets come in by.'),
  endpoints: Type.Record(
    Type.String(),
    Type.Object({
      pipeline: Name('The pipeline that serves the endpoint.'),
      carriers: List(Name('Name of a carrier.'), 'Carriers to the endpoint.', { minItems: 0, default: [] }),
    }),
    { default: {} },
  ),
  routes: Type.Record(
    Type.String(),
    Type.Object({
      endpoints: List(Name('Name of an endpoint.'), 'Endpoints that the route leads to.', { minItems: 0, default: [] }),
      conmment: Optional(Text('For people to read.')),
    }),
    { default: {} },
  ),
})

type RelayConfiguration = Static<typeof RelayConfiguration>

/** What the schema cannot say. */
export function relayFaults({ endpoints, routes }: RelayConfiguration): Problem[] {
  const twice = (names: readonly string[], steps: readonly string[]): Problem[] =>
    names.flatMap((name, i) => {
      if (names.indexOf(name) === i) return []
      return [{ pointer: pointerOf([...steps, i]), message: `"${name}" is listed twice: leave one of them out` }]
    })
  const known = Object.keys(endpoints)
  const there = known.length === 0 ? 'there are none' : `there are ${known.map((name) => `"${name}"`).join(', ')}`
  const unknown = Object.entries(routes).flatMap(([route, { endpoints: names }]) =>
    names.flatMap((name, i): Problem[] => {
      if (Object.hasOwn(endpoints, name)) return []
      const message = `no endpoint is called "${name}": ${there}`
      return [{ pointer: pointerOf(['routes', route, 'endpoints', i]), message }]
    }),
  )
  return [
    ...unknown,
    ...Object.entries(endpoints).flatMap(([name, { carriers }]) => twice(carriers, ['endpoints', name, 'carriers'])),
    ...Object.entries(routes).flatMap(([name, route]) => twice(route.endpoints, ['routes', name, 'endpoints'])),
  ]
}
