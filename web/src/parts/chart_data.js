const two = (value) => String(value).padStart(2, "0");
// A time in the reader's zone, as short as the distance of the ticks allows. Both in seconds.
export function tick(time, distance) {
    const date = new Date(time * 1000);
    const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
    if (distance >= 86_400)
        return `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    return distance >= 60 ? clock : `${clock}:${two(date.getSeconds())}`;
}
// All curves over one axis of times, as uPlot wants them.
export function joined(curves) {
    const times = [...new Set(curves.flatMap((curve) => curve.times))].sort((a, b) => a - b);
    const at = new Map(times.map((time, index) => [time, index]));
    const columns = curves.map((curve) => {
        const column = new Array(times.length).fill(undefined);
        curve.times.forEach((time, index) => {
            column[at.get(time) ?? 0] = curve.values[index] ?? null;
        });
        return column;
    });
    return [times, ...columns];
}
// An exponential moving average; `weight` of what was before, 0 to 0.99.
export function smooth(values, weight) {
    if (weight <= 0)
        return values;
    let sum = 0;
    let mass = 0;
    return values.map((value) => {
        if (value === null)
            return null;
        sum = weight * sum + (1 - weight) * value;
        mass = weight * mass + (1 - weight);
        return sum / mass;
    });
}
