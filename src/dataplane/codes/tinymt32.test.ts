/** The generator of the coefficients against published numbers. */
import { describe, expect, it } from 'vitest'
import { codingCoefficients, TinyMt32 } from './tinymt32.ts'

describe('TinyMT32', () => {
  it('gives the numbers of RFC 8682, and the bytes of RFC 8681, appendix A', () => {
    const random = new TinyMt32(1)
    const first = [2545341989, 981918433, 3715302833, 2387538352, 3591001365]
    const second = [3820442102, 2114400566, 2196103051, 2783359912, 764534509]
    const third = [643179475, 1822416315, 881558334, 4207026366, 3690273640]
    expect(Array.from({ length: 15 }, () => random.draw())).toEqual([...first, ...second, ...third])
    const again = new TinyMt32(1)
    const bytes = [37, 225, 177, 176, 21, 246, 54, 139, 168, 237, 211, 187, 62, 190, 104, 135, 210, 99, 176, 11]
    expect(Array.from({ length: 20 }, () => again.draw() & 255)).toEqual(bytes)
    for (let n = 20; n < 49; n++) again.draw()
    expect(again.draw()).toBe(2292524454)
  })

  it('draws coefficients none of which is 0', () => {
    expect([...codingCoefficients(1, 5)]).toEqual([37, 225, 177, 176, 21])
    for (let key = 0; key < 300; key++) expect(codingCoefficients(key, 300)).not.toContain(0)
  })
})
