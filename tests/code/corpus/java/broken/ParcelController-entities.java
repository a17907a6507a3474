package org.example.desk;

import java.net.URI;
import java.util.List;
import java.util.Optional;

import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.*;

/** Takes parcels and hands them out. */
@RestController
@RequestMapping(&quot;/parcels&quot;)
public class ParcelController {

    private static final int LIMIT = 100;
    private final ParcelService service;

    public ParcelController(ParcelService service) {
        this.service = service;
    }

    @GetMapping
    public List&lt;ParcelDto&gt; list(@RequestParam(defaultValue = &quot;20&quot;) int limit) {
        return service.newest(Math.min(limit, LIMIT)).stream()
            .map(parcel -&gt; new ParcelDto(parcel.id(), parcel.street()))
            .toList();
    }

    @GetMapping(&quot;/{id}&quot;)
    public ResponseEntity&lt;ParcelDto&gt; one(@PathVariable long id) {
        Optional&lt;Parcel&gt; found = service.find(id);
        if (found.isEmpty()) {
            return ResponseEntity.notFound().build();
        }
        Parcel parcel = found.get();
        return ResponseEntity.ok(new ParcelDto(parcel.id(), parcel.street()));
    }

    @PostMapping(consumes = {&quot;application/json&quot;})
    @ResponseStatus(HttpStatus.CREATED)
    public ResponseEntity&lt;Void&gt; add(@RequestBody ParcelDto parcel) {
        long id = service.add(parcel.street());
        return ResponseEntity.created(URI.create(&quot;/parcels/&quot; + id)).build();
    }

    public record ParcelDto(long id, String street) {}
}
